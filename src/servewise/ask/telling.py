"""How far long runs are, told across processes: each writes its count of ended requests into a file of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from servewise.scratch import Scratch

LOOK_S = 0.5
Progress = Callable[[int, int], None]


@contextmanager
def told(progress: Progress | None, total: int) -> Iterator[Path | None]:
    """A folder for ``Teller``s; what they tell, in sum, goes to ``progress`` with ``total`` twice a second.

    None where nobody asks. Counts from other machines are not seen before their run has ended.
    """
    if progress is None:
        yield None
        return
    with Scratch() as scratch, _looking(scratch.path, progress, total):
        yield scratch.path


@contextmanager
def _looking(folder: Path, progress: Progress, total: int) -> Iterator[None]:
    over = Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            progress(min(sum(map(_count, folder.iterdir())), total), total)

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    progress(total, total)


def _count(path: Path) -> int:
    try:
        return int(path.read_text() or 0)
    except (OSError, ValueError):  # it is being written
        return 0


class Teller:
    """Tells under ``name`` in ``folder`` how many requests have ended, a few times a second."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._path = None if folder is None or not folder.is_dir() else folder / name
        self._due_s = 0.0

    def __call__(self, ended: int) -> None:
        """So many have ended."""
        if self._path is not None and time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + LOOK_S
            with contextlib.suppress(OSError):  # only a number on a screen
                self._path.write_text(str(ended))
