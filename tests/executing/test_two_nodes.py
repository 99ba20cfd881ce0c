"""Sweeps on a real Ray cluster of two nodes on this machine, one of which is killed on the way."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.executing.two_nodes import SETTINGS

pytest.importorskip("ray")

PROGRAM = Path(__file__).with_name("two_nodes.py")
START_S, PATIENCE_S = 120.0, 120.0
MODEL = ("llama-2-13b", "--workload", "chat", "--json")
SIMULATE = ("simulate", *MODEL, "--accelerator", "a100-80gb", "--requests", "300", "--rate", "1,2,3", "--seeds", "30")
PLAN = ("plan", *MODEL, "--accelerators", "a100-80gb", "--requests", "100", "--counts", "1", "--slo", "tpot_p95<=1s")
RAYS_OWN = ("You have likely discovered a bug in Ray", "no Ray cluster at")  # its core aborted, or it did not let us in
FLEET = ("fleet", *MODEL, "--accelerator", "a100-80gb", "--requests", "300", "--rate", "2,4", "--seeds", "12")


@pytest.fixture
def nodes() -> Iterator[dict[str, Any]]:
    """What the program tells of the cluster that it holds; its folder's path is short, as sockets lie in it."""
    for last in (False, True):
        with tempfile.TemporaryDirectory(prefix="sw", dir="/tmp", ignore_cleanup_errors=True) as folder:
            program = subprocess.Popen(
                [sys.executable, str(PROGRAM), folder],
                stdin=-1,
                stdout=-1,
                stderr=-3,
                text=True,
                start_new_session=True,
            )
            try:
                line = first_line(program)
                if line:
                    yield json.loads(line)
                    return
            finally:
                end(program)
        assert not last, "the cluster did not start, twice"


def first_line(program: subprocess.Popen[str]) -> str:
    """What it says first; nothing where it ends, or where Ray's start hangs, as it may on a busy machine."""
    assert program.stdout is not None
    ready, _, _ = select.select([program.stdout], [], [], START_S)
    return program.stdout.readline() if ready else ""


def end(program: subprocess.Popen[str]) -> None:
    """End the cluster; by force what does not end by itself."""
    try:
        program.communicate("", timeout=60)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


def begun(*words: str) -> subprocess.Popen[str]:
    """A command that runs."""
    command = [sys.executable, "-m", "servewise", *words]
    return subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=os.environ | SETTINGS)


def document(*words: str) -> str:
    """What a command prints."""
    program = begun(*words)
    output, errors = ended(program)
    assert program.returncode == 0, errors
    return output


def ended(program: subprocess.Popen[str]) -> tuple[str, str]:
    """What it printed; where Ray itself broke, of which servewise can only tell, the test goes no further."""
    output, errors = program.communicate(timeout=PATIENCE_S)
    if any(sign in errors for sign in RAYS_OWN):
        pytest.skip(f"Ray itself broke: {errors.strip().splitlines()[0][:200]}")
    return output, errors


def kept(folder: Path) -> int:
    """Tasks that are kept in the folder."""
    return sum(each.read_bytes().count(b"\n") - 1 for each in folder.glob("*.jsonl"))


def until(holds: Callable[[], bool], program: subprocess.Popen[str]) -> None:
    """Wait for it, while the program runs."""
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < end_s
        time.sleep(0.02)


def workers_of(raylet: int, state: bytes) -> list[int]:
    """The processes that a node started and that call themselves so: ``ray::call`` is a worker that does a task."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == raylet and (each / "cmdline").read_bytes().startswith(state):
                found.append(int(each.name))
    return found


def lose(nodes: Mapping[str, Any], keep: Path, program: subprocess.Popen[str]) -> None:
    """Kill the second node while it does a task; the first is stopped meanwhile, lest it do all of them itself."""
    until(lambda: kept(keep) >= 2, program)
    end_s = time.monotonic() + PATIENCE_S
    while not alone_at_it(nodes, program):
        assert time.monotonic() < end_s
    for each in (nodes["second"], *workers_of(nodes["second"], b"ray::call")):
        os.kill(each, signal.SIGKILL)
    for each in workers_of(nodes["first"], b"ray::"):
        os.kill(each, signal.SIGCONT)


def alone_at_it(nodes: Mapping[str, Any], program: subprocess.Popen[str]) -> bool:
    """Whether the second node, while the first's workers are stopped, was caught at a task within some seconds."""
    first = workers_of(nodes["first"], b"ray::")  # idle ones too: they would do what is left before the second starts
    for each in first:
        os.kill(each, signal.SIGSTOP)
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        assert program.poll() is None, program.communicate()
        if stopped_amid(nodes["second"]):
            return True
        time.sleep(0.02)
    for each in first:  # Ray gave the rest to the first node's queue: let it go on a little
        os.kill(each, signal.SIGCONT)
    time.sleep(0.3)
    return False


def stopped_amid(node: int) -> bool:
    """Whether a worker of the node was stopped while it does a task."""
    for each in workers_of(node, b"ray::call"):
        os.kill(each, signal.SIGSTOP)
        if workers_of(node, b"ray::call"):
            return True
        os.kill(each, signal.SIGCONT)
    return False


@pytest.mark.slow
def test_a_sweep_outlives_a_node_and_an_interrupt(nodes: dict[str, Any], tmp_path: Path) -> None:
    """A cluster gives the document of local processes, to the last bit, though a node dies; Ctrl-C loses nothing."""
    address, keep = nodes["address"], tmp_path / "keep"
    assert document(*PLAN, "--executor", nodes["client"]) == document(*PLAN, "--processes", "1")

    program = begun(*SIMULATE, "--executor", address, "--keep", str(keep))
    lose(nodes, keep, program)
    output, errors = ended(program)
    assert program.returncode == 0, errors
    assert "lost with a worker, done again" in errors
    assert "Traceback" not in errors
    assert output == document(*SIMULATE, "--processes", "2")

    program = begun(*FLEET, "--executor", address, "--keep", str(tmp_path / "fleet"))
    until(lambda: kept(tmp_path / "fleet") >= 2, program)
    program.send_signal(signal.SIGINT)
    output, errors = ended(program)
    assert (program.returncode, output) == (130, ""), errors
    assert "the same command goes on from there" in errors
    assert errors.endswith("servewise: interrupted\n")
    assert "Traceback" not in errors
    assert document(*FLEET, "--keep", str(tmp_path / "fleet")) == document(*FLEET)
