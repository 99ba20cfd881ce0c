"""Keeps one server, and ends it with all that it started as soon as whoever asked for it is gone.

Run as a script with nothing but the standard library: ``keeper.py GRACE_S PARENT_PID COMMAND...``. It stops the server
when its standard input ends (the parent asks for it, or died), when its parent changes, or at SIGTERM, SIGINT, SIGHUP:
SIGTERM to the server's process group, ``GRACE_S`` later SIGKILL. On Linux the server dies with the keeper
(``PR_SET_PDEATHSIG``), and processes that the server left behind are the keeper's own to end
(``PR_SET_CHILD_SUBREAPER``). Its exit code is the server's, 128 + N for one that signal N ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LOOK_S = 0.25
PROC = Path("/proc")


def keep(command: list[str], grace_s: float, parent: int) -> int:
    """Run ``command`` until it ends or must; its exit code."""
    prctl = _prctl()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    asked: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda number, _frame: asked.append(number))
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 (this process has one thread)
        )
    except OSError as error:
        print(f"cannot be started: {error}", file=sys.stderr)
        return 127
    while server.poll() is None and not asked and not _parent_left(parent):
        pass
    _end(server, grace_s)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _prctl() -> Callable[[int, int], object]:
    """Linux's ``prctl``; nothing elsewhere."""
    if not sys.platform.startswith("linux"):
        return lambda _option, _value: None
    call = ctypes.CDLL(None, use_errno=True).prctl
    return lambda option, value: call(option, int(value), 0, 0, 0)


def _parent_left(parent: int) -> bool:
    """Whether standard input ended or the parent is another, after a look of a quarter of a second."""
    ready, _, _ = select.select([0], [], [], LOOK_S)
    return (bool(ready) and not os.read(0, 1024)) or os.getppid() != parent


def _end(server: subprocess.Popen[bytes], grace_s: float) -> None:
    """SIGTERM for the group, then SIGKILL for what is left of it, then for what it left behind."""
    _signal_group(server.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(grace_s)
    until = time.monotonic() + grace_s
    while _signal_group(server.pid, 0) and time.monotonic() < until:
        _reap()
        time.sleep(0.02)
    _signal_group(server.pid, signal.SIGKILL)
    server.wait()
    for pid in _children():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _signal_group(group: int, number: int) -> bool:
    """Whether the group was there to be signalled."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def _reap() -> None:
    """Take leave of adopted processes that ended."""
    for pid in _children():
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)


def _children() -> Iterator[int]:
    """The processes whose parent this one is, as Linux tells."""
    me = str(os.getpid())
    for stat in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            if stat.read_text(errors="replace").rpartition(")")[2].split()[1] == me:
                yield int(stat.parent.name)


if __name__ == "__main__":
    sys.exit(keep(sys.argv[3:], float(sys.argv[1]), int(sys.argv[2])))
