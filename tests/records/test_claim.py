"""One program writes a directory; what dead ones left half written goes, what live ones write stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.records import made
from tests.records.test_open_run import BLANK

from servewise.atomic import OLD_S, replace_whole, sweep
from servewise.errors import InputError
from servewise.records.claim import Claim, under_way
from servewise.records.open_run import OpenRun
from servewise.records.placing import placed
from servewise.records.run_directory import NOWHERE, read_run

HOLD = """
import sys, time
from pathlib import Path
from servewise.records.claim import Claim
claim = Claim(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@contextmanager
def another_program(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the claim of ``directory``."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(directory)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def aged(path: Path) -> Path:
    """As if it had been written two minutes ago."""
    then = time.time() - 2 * OLD_S
    os.utime(path, (then, then))
    return path


def test_a_live_writer_refuses_a_second_and_a_dead_ones_claim_does_not_block(tmp_path: Path) -> None:
    """The claim is another process's until it is killed, and then at once anybody's."""
    with another_program(tmp_path) as process:
        assert under_way(tmp_path)
        with pytest.raises(InputError, match="is being written by another program") as caught:
            Claim(tmp_path)
        process.send_signal(signal.SIGKILL)
        process.wait()
        Claim(tmp_path).release()

    assert "\n" not in str(caught.value)
    assert not under_way(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_goes_on_is_read_as_one_that_does(tmp_path: Path) -> None:
    """Its mark says that it goes on; when its writer is gone, that it was ended from outside."""
    run = OpenRun.begin(tmp_path / "run", BLANK)
    run.append(made.measured(), 0)
    before = read_run(tmp_path / "run").caveats[0].message
    run.close()

    assert before.startswith("partial: the run goes on: 1 requests had ended by then")
    assert read_run(tmp_path / "run").caveats[0].message.startswith("partial: the run was ended from outside")


def test_an_announced_run_that_was_left_is_taken_over(tmp_path: Path) -> None:
    """A task that is done again after its worker died finds the mark of the first, which holds nothing."""
    OpenRun.announce(tmp_path / "run", BLANK).close()
    (tmp_path / "run" / ".requests.parquet.77.part").write_bytes(b"half")
    again = OpenRun.announce(tmp_path / "run", made.simulated_run())
    with pytest.raises(InputError, match="is being written by another program"):
        OpenRun.announce(tmp_path / "run", BLANK)
    again.finish(made.simulated_run())

    assert len(read_run(tmp_path / "run").requests) == 3
    assert sorted(each.name for each in (tmp_path / "run").iterdir()) == [
        *("requests.parquet", "run.json", "steps.parquet")
    ]
    with pytest.raises(InputError, match="not empty"):
        OpenRun.announce(tmp_path / "run", BLANK)


def test_a_measured_run_is_never_taken_over(tmp_path: Path) -> None:
    """What it holds cannot be made again: neither a run with rows nor a word more in its folder gives way."""
    OpenRun.begin(tmp_path / "run", BLANK).close()
    OpenRun.announce(tmp_path / "noted", BLANK).close()
    (tmp_path / "noted" / "notes.txt").write_text("mine")

    for name in ("run", "noted"):
        with pytest.raises(InputError, match="not empty"):
            OpenRun.announce(tmp_path / name, BLANK)
    assert NOWHERE in (tmp_path / "noted" / "run.json").read_text()


def test_what_dead_programs_left_goes_and_what_live_ones_write_stays(tmp_path: Path) -> None:
    """Old and unlocked: removed by the next write of the same file. Young, locked, of another file: left alone."""
    old = aged_file(tmp_path / ".answer.json.aaaa.part")
    other = aged_file(tmp_path / ".report.html.bbbb.part")
    young = tmp_path / ".answer.json.cccc.part"
    young.write_bytes(b"half")
    locked = aged_file(tmp_path / ".answer.json.dddd.part")
    with another_program(locked):
        replace_whole(tmp_path / "answer.json", b"whole")

        assert not old.exists()
        assert other.exists()
        assert young.exists()
        assert locked.exists()
    sweep(tmp_path, old_s=0.0)
    assert [each.name for each in tmp_path.iterdir()] == ["answer.json"]


def aged_file(path: Path) -> Path:
    """A file from two minutes ago."""
    path.write_bytes(b"half")
    return aged(path)


def test_a_directory_that_a_killed_program_was_making_goes(tmp_path: Path) -> None:
    """It lies beside the place, hidden, until the same place is made the next time."""
    part = tmp_path / ".run.aaaa.part"
    part.mkdir()
    (part / "run.json").write_text("half")
    aged(part)
    placed(tmp_path / "run", {"a": b"1"}).release()

    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_holds_only_half_written_files_is_empty(tmp_path: Path) -> None:
    """What a killed program was writing into it does not make a user name another."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.aaaa.part").write_text("half")
    claim = placed(tmp_path / "run", {"a": b"1"})
    claim.release()

    assert (tmp_path / "run" / "a").read_bytes() == b"1"
