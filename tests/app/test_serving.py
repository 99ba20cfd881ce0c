"""The page's socket, and a command line that is asked by a program."""

from __future__ import annotations

import pytest
from tests.cli.running import invoke

from servewise.app.serving import bound
from servewise.cli.asked import answer_of
from servewise.errors import InputError


def test_the_page_listens_on_loopback_only() -> None:
    """Nobody on the network reaches the page."""
    with bound(0) as found:
        host, port = found.getsockname()
    assert host == "127.0.0.1"
    assert port > 0


def test_a_taken_port_is_one_line() -> None:
    """A port that something else holds, or that is none, is told with what to do."""
    with bound(0) as first:
        for port in (first.getsockname()[1], 70_000):
            with pytest.raises(InputError, match="give another with --port"):
                bound(port)


def test_a_run_that_is_not_there_ends_the_start() -> None:
    """A mistyped run is told before the page opens."""
    found = invoke("app", "no-such-run", "--no-browser", "--port", "0")
    assert found.exit_code == 2
    assert found.stderr == "servewise: no-such-run: no such run or answer\n"


def test_a_program_gets_the_answer_and_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A command asked by a program hands over its Answer instead of printing it."""
    found = answer_of(["size", "llama-3-8b", "--accelerator=h100-sxm"])
    assert found.command == "size"
    assert capsys.readouterr() == ("", "")


def test_a_program_gets_progress() -> None:
    """Progress comes as it would on a terminal: how many are done of how many, ending with all."""
    told: list[tuple[int, int]] = []
    line = "simulate llama-3-8b --accelerator h100-sxm --workload azure-conv --requests 20 --rate 1,2 --estimator ideal"
    answer_of(line.split(), lambda done, total: told.append((done, total)))
    assert told[-1] == (2, 2)
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("size llama-3-8b --kv-heads x", "kv_heads"),
        ("size llama-3-8b --accelerator h100-sxm --kv zz", "kv"),
        ("size --accelerator h100-sxm", "model"),
        ("size llama-3-8b --nonsense", ""),
        ("nonsense", ""),
    ],
)
def test_a_program_gets_the_option_that_is_wrong(line: str, where: str) -> None:
    """A mistake comes with the name of its option, so that a form can show it there."""
    with pytest.raises(InputError) as found:
        answer_of(line.split())
    assert found.value.where == where
    assert found.value.what
