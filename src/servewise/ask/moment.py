"""A moment of a simulated run as a file for chrome://tracing or ui.perfetto.dev."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servewise.ask.numbers import positive
from servewise.atomic import replace_whole
from servewise.errors import InputError
from servewise.plan.server import Server
from servewise.records.chrome_trace import chrome_trace
from servewise.records.columns import RequestColumns, StepColumns
from servewise.simulate.arrivals import Arrivals
from servewise.simulate.witness import Witness
from servewise.workload.request import Request

FILE = "servewise-moment.json"
HINT = 'two times from the run\'s start, such as "60s:70s"'
_TIMES = re.compile(r"([\d.]+)s?:([\d.]+)s?")


@dataclass(frozen=True, slots=True)
class Moment:
    """A ``window`` of time, from when figures count [s], and the file that is to show what happened in it."""

    window: tuple[float, float]
    path: Path


def moment_of(window: str | None, file: str | Path | None) -> Moment | None:
    """The moment that is asked for; InputError for a ``file`` without a window, or one that cannot be written."""
    if window is None:
        if file is not None:
            what = "says where to write a moment, but not which"
            raise InputError(what, where="moment_file", hint="give --moment too")
        return None
    return Moment(window_of(window), writable(Path(file or FILE)))


def window_of(text: str) -> tuple[float, float]:
    """``FROM:TO`` in seconds from the run's start; InputError where it is no such window.

    >>> window_of("60s:70s")
    (60.0, 70.0)
    """
    found = _TIMES.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{text!r} is no window of time", where="moment", hint=HINT)
    try:
        from_s, to_s = float(found[1]), float(found[2])
    except ValueError:
        raise InputError(f"{text!r} is no window of time", where="moment", hint=HINT) from None
    if not from_s < to_s:
        raise InputError(f"{text!r} ends before it begins", where="moment", hint=HINT)
    return from_s, positive(to_s, "moment")


def writable(path: Path) -> Path:
    """``path``, where its folder is there; InputError before anything runs otherwise."""
    if path.is_dir() or not path.parent.is_dir():
        raise InputError("cannot be written (is a folder, or in one that is not there)", where=str(path))
    return path


class _Nowhere:
    """A sink for records that nobody reads: a moment may lie deep in a long run."""

    def requests(self, requests: RequestColumns) -> None:
        """Gone."""

    def steps(self, steps: StepColumns) -> None:
        """Gone."""


class _Until:
    """Arrivals up to a time: what comes after the window cannot change what is seen in it."""

    def __init__(self, source: Arrivals, until_s: float) -> None:
        self._source, self._until_s = source, until_s

    @property
    def next_s(self) -> float:
        """When the next request comes, if in time."""
        found = self._source.next_s
        return found if found <= self._until_s else float("inf")

    def take(self) -> Request:
        """The next request."""
        return self._source.take()

    def ended(self, serial: int, now_s: float) -> None:
        """Told on."""
        self._source.ended(serial, now_s)


def write_moment(server: Server, source: Arrivals, asked: Moment, of: Mapping[str, object]) -> dict[str, Any]:
    """Run ``source`` through ``server`` up to the window's end and write what happened in it.

    ``of`` says of which run; returned with it: where it lies, its window, and how many steps and phases it holds.

    The window counts from when figures count: after a settling ``source``'s time. Steps are run, and shown, one by one.
    Raises InputError where nothing happened in the window, or its file cannot be written.
    """
    window, path = asked.window, asked.path
    settle_s = float(getattr(source, "settle_s", 0.0))
    witness = Witness(window[0] + settle_s, window[1] + settle_s)
    server.run(_Until(source, window[1] + settle_s), watch=witness, longest_jump=1, into=_Nowhere())
    moment = witness.finish()
    if not moment.steps:
        raise InputError(f"nothing runs from {window[0]:g} s to {window[1]:g} s", where="moment", hint=HINT)
    content = json.dumps(chrome_trace(moment) | {"otherData": dict(of)}, separators=(",", ":")).encode()
    try:
        replace_whole(path, content)
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=str(path)) from error
    counts = {"steps": len(moment.steps), "phases": len(moment.spans)}
    return {"file": str(path), "from_s": window[0], "to_s": window[1]} | dict(of) | counts
