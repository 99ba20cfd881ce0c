"""Worker processes of this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from servewise.measure.crew.clock_offset import Ping
from servewise.measure.drive.frames import framed
from servewise.measure.drive.job import Setup

PIECE_BYTES = 1 << 20
GOODBYE_S = 5.0


class WorkerProcess:
    """A worker process of this machine. ``ahead_s``: set its clock ahead, as another host's may be (for tests)."""

    def __init__(self, ahead_s: float = 0.0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "servewise.measure.drive.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # an interrupt at the terminal goes to the run, which tells its workers
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        # a schedule's class may stand anywhere that this process imports from
        self.tell(framed(Setup(path=list(sys.path), ahead_s=ahead_s)))

    def fileno(self) -> int:
        """Where it is heard."""
        return self._out.fileno()

    def tell(self, data: bytes) -> None:
        """Tell it something."""
        with contextlib.suppress(OSError):
            self._in.write(data)
            self._in.flush()

    def hear(self) -> bytes:
        """What it says; empty when it is gone."""
        return os.read(self.fileno(), PIECE_BYTES)

    @property
    def end(self) -> str:
        """How it ended."""
        try:
            return f"a worker process died (exit status {self.process.wait(GOODBYE_S)})"
        except subprocess.TimeoutExpired:
            return "a worker process says nothing any more"

    def close(self) -> None:
        """End the process: its input's end tells it to go."""
        for pipe in (self._in, self._out):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self.process.wait(GOODBYE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Here:
    """This machine, with so many workers. All its processes have one monotonic clock (Linux's CLOCK_MONOTONIC)."""

    name = "this machine"
    clock_shared = True

    def __init__(self, workers: int) -> None:
        assert workers >= 1, "a crew has at least one worker"
        self.seats: list[WorkerProcess] = []
        try:
            for _ in range(workers):
                self.seats.append(WorkerProcess())
        except BaseException:
            self.close()
            raise

    def pings(self, count: int) -> list[Ping]:  # noqa: ARG002 - the seam's argument
        """None: the clock is the same."""
        return []

    def close(self) -> None:
        """End all workers."""
        for seat in self.seats:
            seat.close()
        self.seats.clear()
