"""Faults, as changes to the script of a good answer."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace

from servewise.measure.mock.documents import error_document
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.script import End, Script, Write
from servewise.measure.mock.shape import Shape

ENDLESS_BYTES = 20 * 2**20
HUGE_FIELD_BYTES = 2**20
MANY_EVENTS = 101_000


def spoil_events(fault: Fault, events: list[Write], shape: Shape) -> list[Write]:  # noqa: PLR0911, PLR0912 - a table of faults
    """The events of a stream with the fault among them; faults of another kind leave them as they are."""
    half = len(events) // 2
    kept, due_s = events[:half], events[half].after_s
    end = 2 * shape.line_end.encode()

    def said(document: bytes, after_s: float = due_s) -> Write:
        return Write(after_s, b"data: " + document + end)

    match fault:
        case Fault.ERROR_EVENT:
            return [*kept, said(_ERROR), said(b"[DONE]")]
        case Fault.ERROR_EVENT_FIRST:
            return [said(_ERROR, events[0].after_s), said(b"[DONE]", events[0].after_s)]
        case Fault.WRONG_JSON:
            return [*kept, said(b'{"choices":[{"index":0,"delta":{"content":" oh}]'), *events[half:]]
        case Fault.BAD_UTF8:
            return [*kept, said(b'{"choices":[{"index":0,"delta":{"content":" \xff\xfe"}}]}'), *events[half:]]
        case Fault.NOT_AN_OBJECT:
            return [*kept, said(b'["choices", 0]'), *events[half:]]
        case Fault.HALF_EVENT_ENDED:
            data = events[half].data
            return [*kept, Write(due_s, data[: len(data) // 2])]
        case Fault.EMPTY_STREAM:
            return [said(b"[DONE]", events[0].after_s)]
        case Fault.CUT_SHORT:
            return kept or [said(b'{"choices":[]}')]
        case Fault.ENDLESS_EVENT:
            return [*kept, Write(due_s, b"data: " + b" " * ENDLESS_BYTES)]
        case Fault.ENDLESS_LINES:
            return [*kept, Write(due_s, (b"data: " + b" " * 1023 + b"\n") * (ENDLESS_BYTES // 1024))]
        case Fault.ENDLESS_STREAM:
            return [*kept, Write(due_s, events[half].data * MANY_EVENTS)]
        case Fault.GZIP:
            packer = zlib.compressobj(wbits=31)
            return [each._replace(data=packer.compress(each.data) + packer.flush(zlib.Z_SYNC_FLUSH)) for each in events]
        case _:
            return events


def spoil_shape(fault: Fault, shape: Shape) -> Shape:
    """The shape that the fault needs: a wrong length stands in a head."""
    return replace(shape, framing="length") if fault in _OF_LENGTH else shape


def spoil_bytes(fault: Fault, script: Script) -> Script:  # noqa: PLR0911, PLR0912 - a table of faults
    """The script with the fault in its bytes or its end; faults of another kind leave it as it is."""
    half = len(script.writes) // 2
    kept, rest = script.writes[:half], script.writes[half]
    match fault:
        case Fault.LONG_LENGTH:
            return replace(script, writes=kept, end=End.CLOSE)
        case Fault.SHORT_LENGTH:
            told = re.sub(rb"(?<=content-length: )\d+", lambda found: b"%d" % (int(found[0]) // 2), script.at_once)
            return replace(script, at_once=told, end=End.CLOSE)
        case Fault.RESET | Fault.CLOSE | Fault.STALL | Fault.DIE:
            return replace(script, writes=(*kept, rest._replace(data=b"", tokens=0)), end=_ENDS[fault])
        case Fault.STALL_FIRST:
            return replace(script, writes=(), end=End.STALL)
        case Fault.HALF_EVENT:
            cut = rest._replace(data=rest.data[: len(rest.data) // 2], tokens=0)
            return replace(script, writes=(*kept, cut), end=End.CLOSE)
        case Fault.HALF_EVENT_STALL:
            cut = rest._replace(data=rest.data[: len(rest.data) // 2], tokens=0)
            return replace(script, writes=(*kept, cut), end=End.STALL)
        case Fault.BAD_CHUNK | Fault.LONG_CHUNK | Fault.SHORT_CHUNK:
            return replace(
                script, writes=(*kept, rest._replace(data=_chunk(fault, rest.data), tokens=0)), end=End.CLOSE
            )
        case Fault.RESET_BEFORE_DONE:
            last = script.writes[-1]
            until = last._replace(data=last.data.partition(b"data: [DONE]")[0])
            return replace(script, writes=(*script.writes[:-1], until), end=End.RESET)
        case Fault.ENDLESS_TRAILER:
            last = script.writes[-1]
            trailer = last.data.removesuffix(b"\r\n") + b"x-huge: " + b"x" * HUGE_FIELD_BYTES
            return replace(script, writes=(*script.writes[:-1], last._replace(data=trailer)), end=End.CLOSE)
        case Fault.GZIP:
            return replace(script, at_once=script.at_once[:-2] + b"content-encoding: gzip\r\n\r\n")
        case Fault.HUGE_HEAD:
            line, _, fields = script.at_once.partition(b"\r\n")
            huge = b"%b\r\nx-huge: %b\r\n%b" % (line, b"x" * HUGE_FIELD_BYTES, fields)
            return replace(script, at_once=huge)
        case Fault.ENDLESS_HEAD:
            return Script(at_once=b"HTTP/1.1 200 OK\r\n" + b"x-more: and more\r\n" * 65536, end=End.STALL)
        case Fault.HEAD_CUT | Fault.HEAD_RESET | Fault.HEAD_STALL:
            return Script(at_once=b"HTTP/1.1 200 OK\r\ncontent-ty", end=_ENDS[fault])
        case Fault.NOT_HTTP:
            return Script(at_once=b"220 mail.example ESMTP\r\n", end=End.CLOSE)
        case _:
            return script


_ERROR = error_document("the engine has stopped", "InternalServerError", 500)
_ENDS = {
    Fault.RESET: End.RESET,
    Fault.CLOSE: End.CLOSE,
    Fault.STALL: End.STALL,
    Fault.DIE: End.DIE,
    Fault.HEAD_CUT: End.CLOSE,
    Fault.HEAD_RESET: End.RESET,
    Fault.HEAD_STALL: End.STALL,
}
_OF_LENGTH = (Fault.LONG_LENGTH, Fault.SHORT_LENGTH)


def _chunk(fault: Fault, chunk: bytes) -> bytes:
    """A chunk whose size is no number, too large or too small."""
    size, _, rest = chunk.partition(b"\r\n")
    if fault is Fault.BAD_CHUNK or not re.fullmatch(b"[0-9a-f]+", size):
        return b"zz\r\n" + rest
    wrong = {Fault.LONG_CHUNK: b"%x" % (int(size, 16) + 1000), Fault.SHORT_CHUNK: b"%x" % (int(size, 16) // 2)}
    return wrong[fault] + b"\r\n" + rest
