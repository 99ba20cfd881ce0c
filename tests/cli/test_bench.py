"""``servewise bench`` as users run it: exit codes, one JSON document, Ctrl-C, kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import invoke, process

from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock
from servewise.records.run_directory import read_run

KNOWN = ("--model", "mock", "--hardware", "2 cores", "--precision", "bf16")
SMALL = ("--input-tokens", "20", "--output-tokens", "4", "--repeats", "1", "--warmup", "1")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningMock]:
    """A quick server."""
    with running_mock(MockPlan(first_s=(0.02, 0.02), gap_s=0.005)) as found:
        yield found


def test_json_is_one_document_with_contracts_keys(server: RunningMock) -> None:
    """Every key that CONTRACT names for bench, with conditions and percentiles as it fixes them."""
    found = invoke("bench", server.url, *KNOWN, *SMALL, "--concurrency", "1,2", "--requests", "24", "--json")
    document = json.loads(found.stdout)

    assert found.exit_code == 0, found.stderr
    assert document["schema"] == "servewise.bench/1"
    assert {"rows", "run_dir"} <= set(document["result"])
    for row in document["result"]["rows"]:
        assert set(row) >= {
            *("concurrency", "rate_per_s", "requests", "errors", "ttft_s", "tpot_s", "itl_s", "e2e_s"),
            *("output_tokens_per_s", "goodput_per_s", "cached_tokens"),
        }
        assert {"mean", "p50", "p90", "p95", "p99", "ci95_p50", "n"} <= set(row["ttft_s"])
    assert (
        document["conditions"] | {"model": "mock", "hardware": "2 cores", "precision": "bf16"} == document["conditions"]
    )


def test_the_terminal_shows_conditions_first_and_failures_by_name(server: RunningMock) -> None:
    """Conditions, then the table; what is doubtful with its cure."""
    found = invoke("bench", server.url, *KNOWN, *SMALL, "--concurrency", "1", "--requests", "8")

    assert found.exit_code == 0, found.stderr
    assert found.stdout.startswith("mock on 2 cores, bf16")
    assert "Latency by load" in found.stdout
    assert "8 requests completed" not in found.stdout.split("Latency by load")[0]


@pytest.mark.parametrize("missing", ["URL", "--model", "--hardware", "--precision"])
def test_no_figure_without_its_conditions(server: RunningMock, missing: str) -> None:
    """URL, model, hardware and precision are required: one line, exit 2, nothing on stdout."""
    given = {"--model": "mock", "--hardware": "2 cores", "--precision": "bf16"}
    rest = [word for name, value in given.items() if name != missing for word in (name, value)]
    found = invoke("bench", *([] if missing == "URL" else [server.url]), *rest)

    assert (found.exit_code, found.stdout) == (2, "")
    assert missing in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["http://127.0.0.1:1", *KNOWN], 3, "is it running"),
        (["http://127.0.0.1:1", *KNOWN, "--slo", "fast"], 2, "slo"),
        (["http://127.0.0.1:1", *KNOWN, "--ci", "five"], 2, "share"),
        (["http://127.0.0.1:1", *KNOWN, "--concurency", "3"], 2, "did you mean --concurrency"),
        (["http://127.0.0.1:1", "--self-test"], 2, "URL"),
        (["--self-test", "--rate", "4"], 2, "--rate"),
        (["--self-test", "--header", "a: b"], 2, "--header"),
    ],
)
def test_mistakes_are_one_line_with_contracts_exit_code(arguments: list[str], code: int, words: str) -> None:
    """A server that is not there is 3, wrong input 2."""
    found = invoke("bench", *arguments)

    assert (found.exit_code, found.stdout) == (code, "")
    assert words in found.stderr
    assert found.stderr.startswith("servewise: ")
    assert found.stderr.count("\n") == 1


def listens_to_interrupts() -> None:
    """A shell's background job inherits that interrupts are ignored; the command under test must not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def started(server: RunningMock, folder: Path, *more: str) -> subprocess.Popen[str]:
    """A long measurement, once it has kept its first rows."""
    command = [sys.executable, "-m", "servewise", "bench", server.url, *KNOWN, *SMALL, "--concurrency", "2"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    arguments = [*command, "--duration", "300", "--run-dir", str(folder), *more]
    running = subprocess.Popen(arguments, preexec_fn=listens_to_interrupts, **pipes)  # noqa: PLW1509
    journal, patience = folder / "requests.partial.jsonl", time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 5):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < patience
        time.sleep(0.05)
    return running


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_is_130_with_what_was_measured_shown_and_saved(
    server: RunningMock, tmp_path: Path, workers: str
) -> None:
    """Ctrl-C: the answer of what ended is printed, the directory is whole and marked, the line says so."""
    with started(server, tmp_path / "d", "--json", "--workers", workers) as running:
        running.send_signal(signal.SIGINT)
        out, words = running.communicate(timeout=60)

    assert running.returncode == 130
    assert words.strip() == "servewise: interrupted by the user; what ended before is above"
    document = json.loads(out)
    assert document["caveats"][0]["code"] == "partial-run"
    back = read_run(tmp_path / "d")
    assert [each.code for each in back.caveats] == ["partial-run"]
    assert len(back.requests) >= 5
    assert json.loads((tmp_path / "d" / "bench.json").read_text()) == document


def test_a_killed_run_leaves_its_requests_marked_partial(server: RunningMock, tmp_path: Path) -> None:
    """SIGKILL at any moment: what had ended is read, with conditions and the caveat."""
    with started(server, tmp_path / "d") as running:
        running.kill()
        running.communicate(timeout=60)
    back = read_run(tmp_path / "d")

    assert len(back.requests) >= 5
    assert back.conditions.hardware == "2 cores"
    assert [each.code for each in back.caveats] == ["partial-run"]


def test_the_load_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without httptools the line names the extra."""
    monkeypatch.setattr("servewise.cli.bench.find_spec", lambda _: None)
    found = invoke("bench", "http://127.0.0.1:1", *KNOWN)

    assert found.exit_code == 2
    assert "pip install 'servewise[measure]'" in found.stderr


def test_the_key_comes_from_the_environment_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """SERVEWISE_API_KEY is sent; neither the answer nor an error holds it."""
    monkeypatch.setenv("SERVEWISE_API_KEY", "sk-of-the-environment")
    with running_mock(MockPlan(key="sk-of-the-environment", first_s=(0.01, 0.01))) as guarded:
        found = process("bench", guarded.url, *KNOWN, *SMALL, "--concurrency", "1", "--requests", "3", "--json")

    assert found.returncode == 0, found.stderr
    assert "sk-of" not in found.stdout + found.stderr
