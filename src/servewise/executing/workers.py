"""Tasks done wherever an executor says: the same results in the same order, however many do them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from servewise.executing.executor import Executor
from servewise.executing.kept import MISSING, Kept
from servewise.executing.local import Here, Processes
from servewise.executing.notes import counted, note

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int], None]


class Place(Protocol):
    """Where tasks are done."""

    def results(self, function: Callable[[Any, T], R], tasks: Sequence[tuple[int, T]]) -> Iterator[tuple[int, R]]:
        """Each task's number and what ``function`` makes of it, as they are done."""

    def close(self, *, broken_off: bool) -> None:
        """End what was started; what is ``broken_off`` is not waited for."""


class Workers(Generic[S]):
    """Whoever does tasks for ``executor``, all holding ``shared``; started when there is something to do.

    Functions must be a module's own; they, tasks and ``shared`` must be picklable. Nothing depends on who does a task.
    ``of``: what results are kept by, where ``shared`` holds more than they depend on, as a folder to write in.
    """

    def __init__(self, shared: S, executor: Executor, of: object = None) -> None:
        self._shared, self._executor = shared, executor
        question = shared if of is None else of
        self._kept = None if executor.keep is None else Kept(executor.keep, question, executor.sources)
        self._place: Place | None = None
        self._done = self._before = self._asked = 0

    def __enter__(self) -> Workers[S]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._place is not None:
                self._place.close(broken_off=error is not None)
        finally:
            self._leave(error)

    def each(
        self,
        function: Callable[[S, T], R],
        tasks: Sequence[T],
        progress: Progress | None = None,
        here: Callable[[T], bool] | None = None,
    ) -> Iterator[R]:
        """``function(shared, task)`` for each task, in the tasks' order; ``progress`` hears of each as it is done.

        ``here``: tasks that leave files beside their result, which another machine would leave on its own disk and a
        kept result would not leave at all. Where either may be, they are done last, in the caller's own process.
        """
        ready: dict[int, R] = {}
        at = 0
        for number, result in self._results(function, tasks, here):
            ready[number] = result
            if progress is not None:
                progress(at + len(ready), len(tasks))
            while at in ready:
                yield ready.pop(at)
                at += 1

    def _results(
        self, function: Callable[[S, T], R], tasks: Sequence[T], here: Callable[[T], bool] | None
    ) -> Iterator[tuple[int, R]]:
        ours = self._ours(tasks, here)
        self._asked += len(tasks) - len(ours)
        left = []
        for number, task in enumerate(tasks):
            known = MISSING if self._kept is None or number in ours else self._kept.find(function, task)
            if known is not MISSING:
                self._before += 1
                yield number, known
            elif number not in ours:
                left.append((number, task))
        yield from self._new(function, left)
        yield from Here(self._shared).results(function, [(number, tasks[number]) for number in ours])

    def _ours(self, tasks: Sequence[T], here: Callable[[T], bool] | None) -> dict[int, None]:
        if here is None or (self._kept is None and self._executor.cluster is None):
            return {}
        return {number: None for number, task in enumerate(tasks) if here(task)}

    def _new(self, function: Callable[[S, T], R], tasks: Sequence[tuple[int, T]]) -> Iterator[tuple[int, R]]:
        if not tasks:
            return
        if self._place is None:
            self._place = self._started()
        by_number = dict(tasks)
        for number, result in self._place.results(function, tasks):
            self._done += 1
            if self._kept is not None:
                self._kept.add(function, by_number[number], result)
            yield number, result

    def _started(self) -> Place:
        if self._executor.cluster is not None:
            from servewise.executing.remote import Cluster

            return Cluster(self._shared, self._executor.cluster, self._executor.processes)
        if self._executor.processes > 1:
            return Processes(self._shared, self._executor.processes)
        return Here(self._shared)

    def _leave(self, error: BaseException | None) -> None:
        if self._kept is None:
            return
        if self._before:
            note(f"{self._before:,} of {counted(self._asked, 'task')} were done before: {self._kept.path}")
        if error is None and self._executor.forget:
            self._kept.forget()
            return
        self._kept.close()
        if error is not None and self._done + self._before:
            kept = f"{self._done + self._before:,} of {counted(self._asked, 'task')} are kept in {self._kept.path}"
            note(f"{kept}; the same command goes on from there")
