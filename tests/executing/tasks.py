"""Tasks that the tests give to workers: a module's own functions, as every task must be."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def scaled(shared: int, task: int) -> int:
    """The task times what the process holds."""
    return shared * task


def process(_: int, __: int) -> int:
    """Which process does it."""
    return os.getpid()


def counted(folder: Path, task: int) -> int:
    """The task's square; a mark in the folder each time that it is done."""
    (folder / f"{task}-{time.monotonic_ns()}").touch()
    return task * task


def broken_off(folder: Path, task: int) -> int:
    """The same, but what does the third task is interrupted, as by Ctrl-C."""
    if task == 3 and not (folder / "resumed").exists():
        raise KeyboardInterrupt
    return counted(folder, task)


def dies_once(folder: Path, task: int) -> int:
    """Ends its process without a word the first time that the third task is done."""
    mark = folder / "died"
    if task == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task * task


def dies(_: Path, task: int) -> int:
    """Ends its process without a word whenever it does the third task."""
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return task * task
