"""Tasks spread over processes: the same results in the same order, whether by one process or by several."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import TracebackType
from typing import Generic, TypeVar

from servewise.errors import InputError, RunFailed, UnknownName

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

SMALL = 20_000  # requests

_held: list[object] = []  # what a worker process was given when it began


def worthwhile(processes: int, requests: int) -> int:
    """As many of ``processes`` as ``requests`` to simulate are worth: starting some takes as long as ``SMALL``."""
    return processes if requests > SMALL else 1


class Workers(Generic[S]):
    """``processes`` processes that hold ``shared`` (sent once); with 1, the caller's own.

    Processes are spawned, not forked: a caller's script needs ``if __name__ == "__main__":`` for more than one.
    Functions and tasks must be picklable. Nothing depends on which process does a task.
    """

    def __init__(self, shared: S, processes: int) -> None:
        self._shared = shared
        self._executor: ProcessPoolExecutor | None = None
        if processes > 1:
            spawn = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(processes, spawn, initializer=_begin, initargs=(shared,))

    def __enter__(self) -> Workers[S]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=error is None, cancel_futures=True)

    def each(self, function: Callable[[S, T], R], tasks: Sequence[T]) -> Iterator[R]:
        """``function(shared, task)`` for each task, in the tasks' order, as they are done."""
        if self._executor is None:
            for task in tasks:
                yield function(self._shared, task)
            return
        with _unstopped():
            futures: list[Future[R]] = [self._executor.submit(_call, function, task) for task in tasks]
        try:
            for future in futures:
                yield future.result()
        except BrokenProcessPool as error:
            raise RunFailed(
                "a worker process ended unexpectedly; fewer processes or a smaller workload need less memory"
            ) from error
        finally:
            for future in futures:
                future.cancel()


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


def _call(function: Callable[[S, T], R], task: T) -> R:
    try:
        return function(_held[0], task)  # type: ignore[arg-type]
    except UnknownName as error:  # its arguments do not survive the way between processes; its sentence does
        raise InputError(str(error)) from None
