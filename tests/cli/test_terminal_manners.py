"""Width, colour, progress, speed: how the commands behave on a terminal, in a pipe, and when they are interrupted."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import click
import pytest
from tests.cli.running import invoke, workload

from servewise.cli.main import COMMANDS

SERVEWISE = [sys.executable, "-m", "servewise"]
QUICK_S = 0.1


def commands() -> list[tuple[str, ...]]:
    """Every command, and the commands of each group of them."""
    found: list[tuple[str, ...]] = [()]
    for name in COMMANDS:
        command = import_module(f"servewise.cli.{name}").command
        found.append((name,))
        if isinstance(command, click.Group):
            found += [(name, each) for each in command.list_commands(click.Context(command))]
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_help_fits_80_columns(path: tuple[str, ...]) -> None:
    """No help line is wider than 80 columns where the terminal has 80."""
    found = invoke(*path, "--help")

    assert found.exit_code == 0
    assert max(map(len, found.stdout.splitlines())) <= 80


@pytest.mark.parametrize("asked", [["--version"], ["--help"]])
def test_version_and_help_answer_at_once(asked: list[str]) -> None:
    """Under 100 ms of the processor's time, at the best of five: nothing heavy is imported for them.

    Where the machine is so slow that click alone takes over two thirds of that, half as long again as click.
    """
    click_s = min(_processor_s([sys.executable, "-c", "import click"]) for _ in range(3))
    assert min(_processor_s([*SERVEWISE, *asked]) for _ in range(5)) < max(QUICK_S, 1.5 * click_s)


def _processor_s(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def on_a_terminal(asked: list[str], **environment: str) -> str:
    """What a command writes where both stdout and stderr are a terminal."""
    master, slave = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    with subprocess.Popen(asked, stdout=slave, stderr=slave, env=kept | {"TERM": "xterm-256color"} | environment):
        os.close(slave)
        said = b""
        while chunk := _read(master):
            said += chunk
    os.close(master)
    return said.decode()


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the other end is closed
        return b""


SIZE = [*SERVEWISE, "size", "llama-2-13b", "--accelerator", "a100-80gb"]


def test_colour_on_a_terminal_and_none_with_no_color() -> None:
    """A terminal gets colour; with NO_COLOR none of it, the words staying."""
    coloured, plain = on_a_terminal(SIZE), on_a_terminal(SIZE, NO_COLOR="1")

    assert "\x1b[33m" in coloured  # the caveats' yellow
    assert not any(f"\x1b[{code}m" in plain for code in (31, 32, 33))
    assert "KV tokens" in plain


def test_a_pipe_is_plain_unless_colour_is_forced() -> None:
    """No escape in a pipe; FORCE_COLOR gives it there too, for those who page it."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    plain = subprocess.run(SIZE, capture_output=True, text=True, check=True, env=kept).stdout
    forced = subprocess.run(SIZE, capture_output=True, text=True, check=True, env=kept | {"FORCE_COLOR": "1"}).stdout

    assert "\x1b" not in plain
    assert "\x1b[33m" in forced


def test_progress_says_how_far_and_how_long_still() -> None:
    """On a terminal, after a second: percent and the time left; the bar is taken away at the end."""
    code = (
        "import time; from servewise.cli import progress; progress.PATIENCE_S = 0.0\n"
        "with progress.progress_bar('measuring') as bar:\n"
        "    for done in range(1, 6): bar(done, 10); time.sleep(0.25)\n"
    )
    said = on_a_terminal([sys.executable, "-c", code], COLUMNS="80")

    assert "measuring" in said
    assert "50%" in said
    assert "left" in said
    assert "00:0" in said


def test_no_progress_in_a_pipe() -> None:
    """Where stderr is no terminal, nothing is drawn."""
    code = (
        "from servewise.cli import progress; progress.PATIENCE_S = 0.0\n"
        "with progress.progress_bar('measuring') as bar: bar(1, 2)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (found.stdout, found.stderr) == ("", "")


def test_ctrl_c_ends_with_one_line(tmp_path: Path) -> None:
    """A long simulation with workers, interrupted as a terminal does it: 130, one line, no traceback."""
    asked = ["simulate", "llama-2-13b", "--accelerator", "a100-80gb", "--workload", workload(tmp_path)]
    many = ["--requests", "200k", "--seeds", "20", "--rate", "1,2,3", "--processes", "2"]
    running = subprocess.Popen(
        [*SERVEWISE, *asked, *many], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(2.0)
    os.killpg(running.pid, signal.SIGINT)
    said, complaint = running.communicate(timeout=20)

    assert running.returncode == 130
    assert said == ""
    assert complaint.strip() == "servewise: interrupted"
