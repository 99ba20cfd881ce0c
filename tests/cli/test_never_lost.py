"""Real programs killed at random moments, on a disk that is full, in a folder that cannot be written."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.killed import PLAN, kill_bench, kill_simulate, workload
from tests.cli.running import invoke

from servewise.measure.mock.process import RunningMock, running_mock
from servewise.records.run_directory import read_run

KNOWN = ("--model", "mock", "--hardware", "2 cores", "--precision", "bf16")
SMALL = ("--input-tokens", "20", "--output-tokens", "4", "--repeats", "1", "--warmup", "1", "--concurrency", "2")
SEED = 7  # of the moments; what they fall upon is this machine's


@pytest.fixture(scope="module")
def server() -> Iterator[RunningMock]:
    """A quick server, whose log is the truth."""
    with running_mock(PLAN) as found:
        yield found


@pytest.mark.slow
def test_a_measurement_killed_at_random_moments_is_never_lost(server: RunningMock, tmp_path: Path) -> None:
    """Ten kills: each time report opens it, its rows are in the server's log, and --resume comes to the end."""
    found = kill_bench(server, tmp_path, 10, random.Random(SEED))

    assert found.kills == 10
    assert found.ended >= 1


@pytest.mark.slow
def test_a_simulation_killed_at_random_moments_is_whole_or_says_so(tmp_path: Path) -> None:
    """Ten kills: each time report opens what is there; what is whole is what an undisturbed run gives."""
    found = kill_simulate(workload(tmp_path, 1500), tmp_path, 10, random.Random(SEED))

    assert found.kills == 10
    assert found.partial + found.whole + found.before + found.late == 10


def small_files() -> None:
    """A file takes 30 kB and no more, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))


def test_a_full_disk_ends_a_measurement_with_one_line_and_all_that_ended(server: RunningMock, tmp_path: Path) -> None:
    """The journal takes no more: exit 2, the reason, rows up to then; with room again, --resume comes to the end."""
    arguments = ["bench", server.url, *KNOWN, *SMALL, "--requests", "300", "--run-dir", str(tmp_path / "d")]
    command = [sys.executable, "-m", "servewise", *arguments]
    ended = subprocess.run(command, preexec_fn=small_files, capture_output=True, text=True, timeout=120, check=False)
    kept = read_run(tmp_path / "d")
    shown = invoke("report", str(tmp_path / "d"), "--json")
    again = invoke("bench", "--resume", str(tmp_path / "d"), "--json")

    assert ended.returncode == 2, ended.stderr
    assert "File too large); what ended before is kept in it" in ended.stderr
    assert 30 < len(kept.requests) < 300
    assert json.loads(shown.stdout)["caveats"][0]["code"] == "partial-run"
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["result"]["rows"][0]["requests"] == 300
    assert len(read_run(tmp_path / "d" / "cut" / "run-1").requests) == len(kept.requests)


@pytest.mark.parametrize("place", ["file/run", "/proc/run", "/dev/null/run"])
def test_a_place_that_cannot_be_written_is_told_before_any_traffic(
    server: RunningMock, tmp_path: Path, place: str
) -> None:
    """Below a file, in a file system of the kernel's, below a device: one line, exit 2, no request."""
    (tmp_path / "file").write_text("")
    server.forget()
    folder = str(tmp_path / place)
    found = invoke("bench", server.url, *KNOWN, *SMALL, "--requests", "4", "--run-dir", folder)
    simulated = invoke(
        *("simulate", "llama-2-13b", "--accelerator", "a100-80gb", "--rate", "1", "--seeds", "1"),
        *("--estimator", "ideal", "--workload", str(workload(tmp_path, 5)), "--run-dir", folder),
    )

    for each in (found, simulated):
        assert each.exit_code == 2
        assert each.stderr.count("\n") == 1
        assert folder in each.stderr
    assert len(server.log()) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--concurrency", "4"), "was begun with --concurrency 2, not 4"),
        (("--quality-precision", "q4_0"), "--resume takes no --quality-precision"),
        (("--run-dir", "other"), "--resume takes no --run-dir"),
        (("http://127.0.0.1:1",), "was begun with the server at http"),
    ],
)
def test_resume_takes_what_was_begun_and_nothing_else(
    server: RunningMock, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    """Options named again must be as they were; one line names the first that is not."""
    folder = tmp_path / "d"
    made = invoke("bench", server.url, *KNOWN, *SMALL, "--requests", "4", "--run-dir", str(folder))
    found = invoke("bench", *arguments, "--resume", str(folder))
    same = invoke("bench", server.url, "--resume", str(folder), "--concurrency", "2", "--json")

    assert made.exit_code == same.exit_code == 0, same.stderr
    assert json.loads(same.stdout) == json.loads((folder / "bench.json").read_text())
    assert found.exit_code == 2
    assert words in found.stderr
    assert found.stderr.count("\n") == 1
