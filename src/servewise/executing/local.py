"""Tasks done on this machine: in the caller's own process, or by several that are started for it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from servewise.errors import RunFailed
from servewise.executing.notes import note
from servewise.executing.told import heard, told

T = TypeVar("T")
R = TypeVar("R")
FALLS = 3  # times in a row that processes may end without a task done

_held: list[Any] = []  # what a worker process was given when it began


class Here:
    """The caller's own process."""

    def __init__(self, shared: Any) -> None:
        self._shared = shared

    def results(self, function: Callable[[Any, T], R], tasks: Sequence[tuple[int, T]]) -> Iterator[tuple[int, R]]:
        """Each task's number and what ``function`` makes of it, as they are done."""
        for number, task in tasks:
            yield number, function(self._shared, task)

    def close(self, *, broken_off: bool) -> None:
        """Nothing was started."""


class Processes:
    """``count`` processes, each holding ``shared`` (sent once).

    They are spawned, not forked: a caller's script needs ``if __name__ == "__main__":``. Where one ends unexpectedly,
    which is mostly for want of memory, all are started anew, half as many, for the tasks that are left.
    """

    def __init__(self, shared: Any, count: int) -> None:
        self._shared, self._count = shared, count
        self._pool = self._started()

    def results(self, function: Callable[[Any, T], R], tasks: Sequence[tuple[int, T]]) -> Iterator[tuple[int, R]]:
        """Each task's number and what ``function`` makes of it, as they are done."""
        left, falls = dict(tasks), 0
        while left:
            try:
                for number, result in self._once(function, left):
                    del left[number]
                    falls = 0
                    yield number, result
            except BrokenProcessPool as error:
                falls += 1
                self._again(falls, len(left), error)

    def close(self, *, broken_off: bool) -> None:
        """End the processes, without waiting for what they do if it is ``broken_off``."""
        self._pool.shutdown(wait=not broken_off, cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._count, spawn, initializer=_begin, initargs=(self._shared,))

    def _once(self, function: Callable[[Any, T], R], tasks: dict[int, T]) -> Iterator[tuple[int, R]]:
        with _unstopped():
            futures: dict[Future[Any], int] = {
                self._pool.submit(_call, function, task): number for number, task in tasks.items()
            }
        try:
            for future in as_completed(futures):
                yield futures[future], heard(future.result())
        except GeneratorExit:  # no more is wanted; after Ctrl-C the pool's own thread cancels, and must be alone at it
            for future in futures:
                future.cancel()
            raise

    def _again(self, falls: int, left: int, error: BaseException) -> None:
        self.close(broken_off=True)
        if falls > FALLS:
            what = f"worker processes ended unexpectedly, {falls} times in a row"
            raise RunFailed(f"{what}; fewer processes or a smaller workload need less memory") from error
        self._count = max(1, self._count // 2)
        note(f"a worker process ended unexpectedly; {left:,} tasks go on with {self._count}")
        self._pool = self._started()


@contextmanager
def _unstopped() -> Iterator[None]:
    """Hold back Ctrl-C while processes are started, here and in them: half a start would end in tracebacks."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(shared: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker without a traceback
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _held[:] = [shared]


def _call(function: Callable[[Any, T], R], task: T) -> Any:
    return told(function, _held[0], task)
