"""Faults, as changes to the script of a good answer."""

from __future__ import annotations

from dataclasses import replace

from servewise.measure.mock.documents import error_document
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.script import End, Script, Write
from servewise.measure.mock.shape import Shape

ENDLESS_BYTES = 20 * 2**20
HUGE_FIELD_BYTES = 2**20


def spoil_events(fault: Fault, events: list[Write], shape: Shape) -> list[Write]:  # noqa: PLR0911 - a table of faults
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
        case _:
            return events


def spoil_bytes(fault: Fault, script: Script) -> Script:  # noqa: PLR0911 - a table of faults
    """The script with the fault in its bytes or its end; faults of another kind leave it as it is."""
    half = len(script.writes) // 2
    kept, rest = script.writes[:half], script.writes[half]
    match fault:
        case Fault.RESET | Fault.CLOSE | Fault.STALL | Fault.DIE:
            return replace(script, writes=(*kept, rest._replace(data=b"", tokens=0)), end=_ENDS[fault])
        case Fault.STALL_FIRST:
            return replace(script, writes=(), end=End.STALL)
        case Fault.HALF_EVENT:
            cut = rest._replace(data=rest.data[: len(rest.data) // 2], tokens=0)
            return replace(script, writes=(*kept, cut), end=End.CLOSE)
        case Fault.BAD_CHUNK:
            return replace(script, writes=(*kept, rest._replace(data=b"zz\r\n", tokens=0)), end=End.CLOSE)
        case Fault.HUGE_HEAD:
            line, _, fields = script.at_once.partition(b"\r\n")
            huge = b"%b\r\nx-huge: %b\r\n%b" % (line, b"x" * HUGE_FIELD_BYTES, fields)
            return replace(script, at_once=huge)
        case Fault.HEAD_CUT:
            return Script(at_once=b"HTTP/1.1 200 OK\r\ncontent-ty", end=End.CLOSE)
        case Fault.NOT_HTTP:
            return Script(at_once=b"220 mail.example ESMTP\r\n", end=End.CLOSE)
        case _:
            return script


_ERROR = error_document("the engine has stopped", "InternalServerError", 500)
_ENDS = {Fault.RESET: End.RESET, Fault.CLOSE: End.CLOSE, Fault.STALL: End.STALL, Fault.DIE: End.DIE}
