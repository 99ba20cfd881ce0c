"""The commands as a whole: help, names, exit codes, and what they import."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import invoke, process, workload

from servewise import __version__
from servewise.ask.run import run_answer
from servewise.cli import demo
from servewise.cli.main import COMMANDS

CONTRACT = ("size", "steptime", "simulate", "speculate", "prefix", "plan", "study", "report", "demo")


def test_help_lists_every_command() -> None:
    """CONTRACT's commands of this version are there, each with its line."""
    found = invoke("--help")

    assert found.exit_code == 0
    for name in CONTRACT:
        assert name in COMMANDS
        assert f"  {name} " in found.output


@pytest.mark.parametrize("name", CONTRACT)
def test_every_command_has_help(name: str) -> None:
    """Each explains itself and its options, also by -h."""
    found = invoke(name, "-h")

    assert found.exit_code == 0
    assert found.output.startswith(f"Usage: servewise {name}")
    assert "--output" in found.output


def test_version() -> None:
    """The version is the package's."""
    assert __version__ in invoke("--version").output


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["siez"], "did you mean size"),
        (["size", "llama-2-13b", "--acelerator", "t4"], "did you mean --accelerator"),
        (["size"], "missing argument 'MODEL'"),
        (["size", "llama-2-13b", "--context"], "requires an argument"),
        (["size", "llama-2-13b", "t4"], "unexpected extra argument"),
        (["simulate", "llama-2-13b", "--accelerator", "t4"], "--workload"),
        (["size", "llama-2-13b", "--accelerator", "a100-80"], "did you mean a100-80gb"),
        (["size", "lama-2-13b", "--accelerator", "t4"], "did you mean llama-2-13b"),
    ],
)
def test_mistakes_are_one_line_with_a_hint(arguments: list[str], hint: str) -> None:
    """Our own errors and click's read alike: servewise: where: what; hint, exit code 2, nothing on stdout."""
    found = invoke(*arguments)

    assert found.exit_code == 2
    assert found.stdout == ""
    assert found.stderr.startswith("servewise: ")
    assert found.stderr.count("\n") == 1
    assert hint in found.stderr


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ("numpy", "rich", "matplotlib", "jinja2", "servewise.ask", "servewise.report", "asyncio")),
        (["size", "llama-2-13b", "--accelerator", "t4", "--json"], ("numpy", "rich", "matplotlib", "asyncio")),
        (["size", "llama-2-13b", "--accelerator", "t4"], ("numpy", "matplotlib", "asyncio", "arro3.core")),
        (["steptime", "llama-2-13b", "--accelerator", "t4"], ("numpy", "matplotlib", "asyncio", "arro3.core")),
    ],
)
def test_commands_import_only_what_they_need(arguments: list[str], absent: tuple[str, ...]) -> None:
    """What would cost tenths of a second is not imported: counted as modules, which no busy machine changes."""
    code = (
        "import sys\nfrom servewise.cli.main import servewise\n"
        "try:\n    servewise.main(sys.argv[1].split())\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print([name for name in sys.argv[2:] if name in sys.modules], file=sys.stderr)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, " ".join(arguments), *absent], capture_output=True, text=True, check=True
    )

    assert found.stderr.strip() == "[]"


def test_a_gate_that_does_not_hold_is_1() -> None:
    """size --check fails with 1 where the model does not fit, and its answer is still there; without it 0."""
    asked = ("size", "llama-2-70b", "--accelerator", "t4")

    assert invoke(*asked, "--check").exit_code == 1
    assert "short" in invoke(*asked, "--check").stdout
    assert invoke(*asked).exit_code == 0
    assert invoke("size", "llama-2-13b", "--accelerator", "a100-80gb", "--check").exit_code == 0


def test_a_plan_that_nothing_meets_is_an_answer_or_a_gate(tmp_path: Path) -> None:
    """Exit 0 with the closest named; with --check exit 1."""
    asked = ["plan", "llama-2-13b", "--accelerators", "a100-80gb", "--workload", workload(tmp_path), "--counts", "1"]
    asked += ["--slo", "tpot_p50<=1us", "--processes", "1"]

    assert invoke(*asked).exit_code == 0
    assert "closest" in invoke(*asked).stdout.lower()
    assert invoke(*asked, "--check").exit_code == 1


def test_a_reader_that_leaves_is_no_error() -> None:
    """``servewise size ... | head -1`` ends without a traceback."""
    command = [sys.executable, "-m", "servewise", "steptime", "llama-2-13b", "--accelerator", "t4", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        words = running.stderr.read()

    assert words == ""
    assert running.returncode == 141


def _listens_to_interrupts() -> None:
    """A shell's background job inherits that interrupts are ignored; the command under test must not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_interrupt_is_130_and_what_ran_is_kept(tmp_path: Path) -> None:
    """Ctrl-C once the first row has run: one line, exit code 130, and that row's run directory is whole."""
    asked = ["simulate", "llama-2-13b", "--accelerator", "a100-80gb", "--workload", "azure-conv", "--run-dir", "kept"]
    asked += ["--rate", "0.5,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "--processes", "1"]
    command = [sys.executable, "-m", "servewise", *asked]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, preexec_fn=_listens_to_interrupts, **pipes) as running:  # noqa: PLW1509
        first = tmp_path / "kept" / "continuous-0.5"
        header = first / "run.json"  # there from before the run, which it says
        while not header.exists() or '"partial"' in header.read_text():
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, words = running.communicate(timeout=120)

    assert running.returncode == 130
    assert words.strip() == "servewise: interrupted"
    assert out == ""
    assert len(run_answer(first).result["rows"]) == 1


def test_module_runs_like_the_script() -> None:
    """``python -m servewise`` is the same command."""
    found = process("size", "llama-2-13b", "--accelerator", "a100-80gb")

    assert found.returncode == 0
    assert found.stdout == invoke("size", "llama-2-13b", "--accelerator", "a100-80gb").stdout


def test_demo_writes_its_report_where_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The report lies in the folder that the command runs in, and stderr names it."""
    import servewise

    answer = servewise.size("llama-2-13b", "a100-80gb")
    made = servewise.Answer("demo", answer.conditions, {"sections": {"size": answer.to_json()}})
    monkeypatch.setattr("servewise.ask.demo.demo", lambda **_: made)
    monkeypatch.chdir(tmp_path)
    found = invoke("demo")

    assert found.exit_code == 0, found.stderr
    assert (tmp_path / demo.REPORT).read_text().lstrip().lower().startswith("<!doctype html")
    assert str(tmp_path / demo.REPORT) in found.stderr
