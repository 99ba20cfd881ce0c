"""Columns on disk: read as they were written, and gone with their owner, however that ends."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from servewise.errors import InputError
from servewise.scratch import Scratch

HOLDS = "import sys\nfrom servewise.scratch import Scratch\ns = Scratch()\nprint(s.path, flush=True)\nsys.stdin.read()"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_a_column_reads_as_an_array() -> None:
    """Appended in three parts: slices, single rows from either end, pieces; and from another process's copy of it."""
    values = np.arange(1_000) ** 2
    with Scratch() as scratch:
        column = scratch.column("q")
        for part in np.split(values, [3, 700]):
            column.append(part)
        copy = pickle.loads(pickle.dumps(column))
        for each in (column, copy):
            assert len(each) == 1_000
            assert each[:].tolist() == values.tolist()
            assert (each[5:9].tolist(), each[-1], each[0]) == (values[5:9].tolist(), values[-1], 0)
            assert np.concatenate(list(each.pieces(rows=33))).tolist() == values.tolist()
        assert column.digest() == copy.digest()


def test_the_folder_goes_with_its_last_column(tmp_path: Path) -> None:
    """As long as a column is used its file is there; then nothing is."""
    column = Scratch().column()
    column.append(np.ones(5))
    gc.collect()
    assert column[4] == 1.0
    del column
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_goes_with_the_next_folder(tmp_path: Path) -> None:
    """A folder in use stays, however old; once its process is killed the next folder takes it away."""
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        held = Path(other.stdout.readline().decode().strip())
        os.utime(held, (time.time() - 1e6,) * 2)
        Scratch().close()
        assert held.is_dir()
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert held.is_dir()
        Scratch().close()
        assert os.listdir(tmp_path) == []


def test_a_full_disk_and_a_lost_file_are_one_line() -> None:
    """A device that is always full, a file that was cut short, one that is gone: each an InputError with its name."""
    with Scratch() as scratch:
        full = scratch.column()
        full.path.symlink_to("/dev/full")
        with pytest.raises(InputError, match="cannot be written"):
            full.append(np.ones(9))
        cut = scratch.column()
        cut.append(np.ones(9))
        os.truncate(cut.path, 16)
        with pytest.raises(InputError, match="cut off from outside"):
            cut.read(0, 9)
        cut.path.unlink()
        with pytest.raises(InputError, match="cannot be read"):
            cut.read(0, 9)
