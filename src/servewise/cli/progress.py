"""A progress bar on stderr for what takes over a second; nothing where stderr is no terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from servewise.cli.asked import asked

PATIENCE_S = 1.0
Progress = Callable[[int, int], None]


@contextmanager
def progress_bar(what: object) -> Iterator[Progress]:
    """A function that takes (done, in all); the bar appears once a second has passed, behind the text of ``what``."""
    program = asked()
    if program is not None:
        yield program.progress
        return
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    bar = _Bar(what)
    try:
        yield bar.show
    finally:
        bar.stop()


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
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Rich

        columns = (
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(compact=True),
            TextColumn("left"),
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
