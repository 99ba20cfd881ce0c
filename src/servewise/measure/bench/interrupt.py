"""Ctrl-C taken note of, and raised where nothing is half done."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupt:
    """While entered, a first interrupt is noted; ``check`` raises it. A second one is raised at once.

    Python raises KeyboardInterrupt between any two operations: also between the columns of a row. Outside the main
    thread, or where interrupts are ignored or handled by the caller's own handler, nothing is changed.
    """

    def __init__(self) -> None:
        self.noted = False
        self._before: object = None

    def __enter__(self) -> Interrupt:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raise what was noted."""
        if self.noted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            signal.default_int_handler(number, frame)
        self.noted = True
