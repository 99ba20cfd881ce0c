"""Server-sent events read from bytes that may be cut anywhere (WHATWG HTML, section 9.2.6; no I/O)."""

from __future__ import annotations

from typing import NamedTuple

EVENT_LIMIT_BYTES = 16 * 1024 * 1024
_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its ``data`` lines joined, and its type (empty: none was given)."""

    data: bytes
    kind: bytes = b""


class EventStream:
    """Feed it the bytes of a body; it returns the events that ended in them.

    Lines may end in LF, CRLF or CR. Comments, ids and retry times are passed over. A field named ``error`` (llama.cpp
    before 2025) counts as an event of that type. ``other_lines`` counts lines that are no field of an event stream.
    ``overlong``: a line, or the lines of an event together, are over the limit.
    """

    def __init__(self) -> None:
        self.other_lines = 0
        self.overlong = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._after_cr = False
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._kind = b""
        self._begun = False

    def feed(self, piece: bytes) -> list[Event]:
        """The events that ended within ``piece``."""
        if (  # the usual case, one whole event of one line, without a loop over lines
            piece.startswith(b"data: {")
            and piece.endswith(b"}\n\n")
            and piece.count(b"\n") == 2
            and b"\r" not in piece
            and not (self._held or self._data or self._kind)
        ):
            self._begun, self._after_cr = True, False
            return [Event(piece[6:-2])]
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        return self._lines(piece) if piece else []

    def rest(self) -> list[Event]:
        """The event that the end of the body left without its blank line, where there is one."""
        line, self._held, self._held_bytes = b"".join(self._held), [], 0
        self._line(line)
        return self._ended()

    def _lines(self, piece: bytes) -> list[Event]:
        if b"\n" not in piece and b"\r" not in piece:
            self._hold(piece)
            return []
        events: list[Event] = []
        self._after_cr = piece.endswith(b"\r")
        lines = (b"".join(self._held) + piece).splitlines(keepends=True)
        self._held, self._held_bytes = [], 0
        if not lines[-1].endswith((b"\n", b"\r")):
            self._hold(lines.pop())
        for line in lines:
            bare = line.rstrip(b"\r\n")
            if bare:
                self._line(bare)
            else:
                events += self._ended()
        return events

    def _hold(self, piece: bytes) -> None:
        self._held.append(piece)
        self._held_bytes += len(piece)
        self.overlong = self.overlong or self._held_bytes > EVENT_LIMIT_BYTES

    def _line(self, line: bytes) -> None:
        if not self._begun:
            line = line.removeprefix(_MARK)
            self._begun = True
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field in (b"data", b"error"):
            self._data.append(value)
            self._data_bytes += len(line)
            self.overlong = self.overlong or self._data_bytes > EVENT_LIMIT_BYTES
            self._kind = field if field == b"error" else self._kind
        elif field == b"event":
            self._kind = value
        elif field not in (b"", b"id", b"retry"):
            self.other_lines += 1

    def _ended(self) -> list[Event]:
        data, kind = b"\n".join(self._data), self._kind
        self._data, self._data_bytes, self._kind = [], 0, b""
        return [Event(data, kind)] if data else []
