"""Worker processes that together send one schedule."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Self

from servewise.errors import RunFailed
from servewise.measure.drive.drive import DRAIN_S
from servewise.measure.drive.frames import Frames, framed
from servewise.measure.drive.job import Done, Ended, Job, Ready, Stop
from servewise.measure.drive.packing import unpacked
from servewise.measure.exchange import Exchange
from servewise.measure.schedule import Schedule
from servewise.measure.sending import Sending
from servewise.measure.target import Target

PIECE_BYTES = 1 << 20
LOOK_S = 0.05
START_S = 30.0  # a worker imports for a fraction of a second
GOODBYE_S = 5.0


class _Worker:
    """A worker process and what it said last."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "servewise.measure.drive.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # an interrupt at the terminal goes to the run, which tells its workers
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._frames = Frames()
        self.ready = False
        self.done: Done | None = None
        self.tell(list(sys.path))  # a schedule's class may stand anywhere that this process imports from

    def fileno(self) -> int:
        """Where it is heard."""
        return self._out.fileno()

    def tell(self, message: object) -> None:
        """Tell it something; a dead worker is noticed when it is heard."""
        with contextlib.suppress(OSError):
            self._in.write(framed(message))
            self._in.flush()

    def hear(self) -> list[Any] | None:
        """What it says; None when it has gone."""
        data = os.read(self.fileno(), PIECE_BYTES)
        return self._frames.feed(data) if data else None

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


class Crew:
    """Workers, started once and used for one ``drive`` after another; a context manager that ends them."""

    def __init__(self, workers: int) -> None:
        assert workers >= 1, "a crew has at least one worker"
        self._workers: list[_Worker] = []
        try:
            for _ in range(workers):
                self._workers.append(_Worker())
            self._await_ready()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def drive(
        self,
        schedule: Schedule,
        target: Target,
        *,
        start_s: float,
        on_end: Callable[[Exchange], None],
        until_s: float | None = None,
        stop: Callable[[], bool] | None = None,
        keep_text: bool = False,
        keep_logprobs: bool = False,
        drain_s: float = DRAIN_S,
    ) -> Sending:
        """As ``drive``: each worker sends its share of ``schedule``; ``on_end`` is called in this thread.

        RunFailed when a worker dies or fails: the others are stopped, and what they had is handed over first.
        """
        assert self._workers, "the crew is closed"
        for worker, share in zip(self._workers, schedule.split(len(self._workers)), strict=True):
            worker.done = None
            worker.tell(
                Job(
                    schedule=share,
                    target=target,
                    start_s=start_s,
                    until_s=until_s,
                    drain_s=drain_s,
                    keep_text=keep_text,
                    keep_logprobs=keep_logprobs,
                )
            )
        told_s = monotonic()
        try:
            self._gather(on_end, stop)
        except BaseException:
            self._stop_at_once(on_end)
            raise
        late = (f"the workers had their shares {told_s - start_s:.3f} s after the start",) if told_s > start_s else ()
        return _together([worker.done.sending for worker in self._workers if worker.done], late)

    def _await_ready(self) -> None:
        until_s = monotonic() + START_S
        while not all(worker.ready for worker in self._workers):
            if monotonic() > until_s:
                raise RunFailed("the worker processes did not start in time")
            self._listen(_unwanted)

    def _gather(self, on_end: Callable[[Exchange], None], stop: Callable[[], bool] | None) -> None:
        stopped = False
        while not all(worker.done for worker in self._workers):
            if not stopped and stop is not None and stop():
                stopped = True
                for worker in self._workers:
                    worker.tell(Stop(at_once=False))
            self._listen(on_end)
        faults = [worker.done.fault for worker in self._workers if worker.done and worker.done.fault]
        if faults:
            raise RunFailed(f"a worker process failed: {faults[0]}")

    def _listen(self, on_end: Callable[[Exchange], None]) -> None:
        """Hear all who speak within a moment; RunFailed for one that has gone."""
        waiting = [worker for worker in self._workers if not worker.done]
        for worker in select.select(waiting, [], [], LOOK_S)[0]:
            messages = worker.hear()
            if messages is None:
                code = worker.process.wait()
                worker.done = Done(Sending(), "died")
                raise RunFailed(f"a worker process died (exit status {code}); the run's results up to then are kept")
            for message in messages:
                _take(worker, message, on_end)

    def _stop_at_once(self, on_end: Callable[[Exchange], None]) -> None:
        for worker in self._workers:
            worker.tell(Stop(at_once=True))
        until_s = monotonic() + GOODBYE_S
        while not all(worker.done for worker in self._workers) and monotonic() < until_s:
            try:
                self._listen(on_end)
            except RunFailed:
                continue


def _take(worker: _Worker, message: object, on_end: Callable[[Exchange], None]) -> None:
    if isinstance(message, Ended):
        for each in message.exchanges:
            on_end(unpacked(each))
    elif isinstance(message, Done):
        worker.done = message
    elif isinstance(message, Ready):
        worker.ready = True


def _unwanted(exchange: Exchange) -> None:
    raise AssertionError(f"request {exchange.ask.serial} ended before a run began")


def _together(sendings: Sequence[Sending], notes: tuple[str, ...]) -> Sending:
    """One account of all workers; ``most_open`` is the sum of each one's own most."""
    return Sending(
        lateness_s=tuple(each for sending in sendings for each in sending.lateness_s),
        stalls_s=tuple(each for sending in sendings for each in sending.stalls_s),
        read_lag_s=tuple(each for sending in sendings for each in sending.read_lag_s),
        merged=sum(sending.merged for sending in sendings),
        merged_s=tuple(each for sending in sendings for each in sending.merged_s),
        cpu_s=sum(sending.cpu_s for sending in sendings),
        wall_s=max((sending.wall_s for sending in sendings), default=0.0),
        workers=len(sendings),
        most_open=sum(sending.most_open for sending in sendings),
        notes=notes + tuple(note for sending in sendings for note in sending.notes),
    )
