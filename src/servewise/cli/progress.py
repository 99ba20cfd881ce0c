"""Progress on stderr: a bar for what takes over a second; where stderr is no terminal, a line each half minute.

What is counted in thousands (requests of a long run) shows how many are done, and how many a second.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from servewise.cli.asked import asked

PATIENCE_S = 1.0
LINE_S = 30.0  # between two lines
MANY = 10_000  # of what is counted one by one
Progress = Callable[[int, int], None]


@contextmanager
def progress_bar(what: object) -> Iterator[Progress]:
    """A function that takes (done, in all); the bar appears once a second has passed, behind the text of ``what``."""
    program = asked()
    if program is not None:
        yield program.progress
        return
    if not sys.stderr.isatty():
        yield _Lines(what).show
        return
    bar = _Bar(what)
    try:
        yield bar.show
    finally:
        bar.stop()


class _Lines:
    """Lines for a file or another program, for what takes long."""

    def __init__(self, what: object) -> None:
        self._what = what
        self._began = self._last = time.monotonic()

    def show(self, done: int, total: int) -> None:
        """``done`` of ``total``."""
        now = time.monotonic()
        if now - self._last >= LINE_S and done < total:
            self._last = now
            print(f"{self._what}: {counted(done, total, done / (now - self._began))}", file=sys.stderr, flush=True)


def counted(done: int, total: int, per_s: float | None) -> str:
    """How far it is, in words.

    >>> counted(3, 15, 0.2), counted(3_412_000, 10_000_000, 31_200.0)
    ('3 of 15', '3,412,000 of 10,000,000, 31,200/s')
    """
    rate = f", {per_s:,.0f}/s" if per_s is not None and total >= MANY else ""
    return f"{done:,} of {total:,}{rate}"


class _Bar:
    """The bar, drawn by rich from the first word that comes after a second."""

    def __init__(self, what: object) -> None:
        self._what = what
        self._began = time.monotonic()
        self._stop: Callable[[], None] = lambda: None
        self._update: Progress | None = None

    def show(self, done: int, total: int) -> None:
        """``done`` of ``total``."""
        if self._update is None:
            if time.monotonic() - self._began < PATIENCE_S:
                return
            self._update = self._start()
        self._update(done, total)

    def _start(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Rich
        from rich.text import Text

        class Many(ProgressColumn):
            """How many of how many, and a second, where there are many."""

            def render(self, task: Task) -> Text:
                total = int(task.total or 0)
                return Text(counted(int(task.completed), total, task.speed) if total >= MANY else "")

        columns = (
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Many(),
            TimeRemainingColumn(compact=True), TextColumn("left"),
        )  # fmt: skip
        bar = Rich(*columns, console=Console(stderr=True), transient=True)
        task = bar.add_task(str(self._what), total=None)
        bar.start()
        self._stop = bar.stop
        return lambda done, total: bar.update(task, description=str(self._what), completed=done, total=total)

    def stop(self) -> None:
        """Take the bar away."""
        self._stop()


def usable_cores() -> int:
    """The cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
