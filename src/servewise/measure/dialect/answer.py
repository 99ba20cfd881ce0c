"""One whole answer: HTTP within bytes, events within HTTP, output within events; and how it ended."""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from math import nan

import orjson

from servewise.measure.dialect.event_stream import EventStream
from servewise.measure.dialect.fault import error_in, line_of, one_line
from servewise.measure.dialect.reading import Reading
from servewise.measure.dialect.retry_after import retry_after_s
from servewise.measure.outcome import Outcome
from servewise.measure.wire.http_answer import HttpAnswer

BODY_LIMIT_BYTES = 64 * 1024 * 1024
TOKEN_LIMIT_BYTES = 8 * 1024  # more for each token that was asked for: twenty alternatives with their bytes are 3 KiB
OUTPUTS, LEAST_OUTPUTS = 16, 100_000  # events with output: times the tokens that were asked for, and always so many


class Ending(Enum):
    """How the bytes of an answer ended."""

    WHOLE = "whole"  # the HTTP message is complete, or this is looked at before any other end
    CLOSED = "closed"  # the server closed the connection
    RESET = "reset"


class Answer:
    """Feed it the bytes with their times, cut anywhere. No bytes raise anything, and what is kept of them is bounded.

    ``asked_tokens``: the most output that was asked for; an answer far beyond it is damage. ``over``: no more needs to
    be read. ``head_s``: when the head was whole; ``last_s``: when the last byte came.
    """

    def __init__(self, *, keep_text: bool = False, keep_logprobs: bool = False, asked_tokens: int = 0) -> None:
        self.http = HttpAnswer(self._body)
        self.reading = Reading(keep_text=keep_text, keep_logprobs=keep_logprobs)
        self.head_s = nan
        self.last_s = nan
        self._stream = EventStream()
        self._whole: bytearray | None = None  # a body that is no event stream
        self._streaming = False
        self._overlong = False
        self._left_bytes = BODY_LIMIT_BYTES + TOKEN_LIMIT_BYTES * asked_tokens
        self._most_outputs = max(OUTPUTS * asked_tokens, LEAST_OUTPUTS)
        self._body_s = nan
        self._closed = False

    def feed(self, data: bytes, time_s: float) -> None:
        """Read on: ``data`` came at ``time_s``."""
        headless = self.http.status is None
        self.last_s = time_s
        self.http.feed(data)
        if headless and self.http.status is not None:
            self.head_s = time_s

    @property
    def over(self) -> bool:
        """Whether the answer is decided: complete, spoiled, or [DONE] where only a close would end it."""
        return (
            self.http.complete
            or bool(self.http.fault)
            or self.reading.fault is not None
            or self._overlong
            or self._stream.overlong
            or self.reading.outputs > self._most_outputs
            or (self.reading.done and self.http.until_close)
        )

    def retry_after_s(self) -> float | None:
        """How long the server asks to wait before another try [s], where it says (RFC 9110, section 10.2.3)."""
        return retry_after_s(self.http.headers.get("retry-after"))

    def verdict(self, ending: Ending) -> tuple[Outcome, str]:
        """The one outcome of an answer that is over or whose bytes ended so, and its reason."""
        self._close(ending)
        http, reading = self.http, self.reading
        if http.fault:
            return Outcome.PROTOCOL, http.fault
        if http.status is None:
            return _headless(ending)
        if not 200 <= http.status < 300:
            return _by_status(http.status, http.headers, b"" if self._coding else bytes(self._whole or b""))
        beyond = self._beyond()
        if beyond:
            return Outcome.PROTOCOL, beyond
        return reading.fault or self._ended(ending)

    def _beyond(self) -> str:
        """Why an answer of good status is not read, in one line."""
        if self._coding:
            return one_line(f"the answer is coded ({self._coding}), which was not asked for")
        if self._overlong or self._stream.overlong:
            return "an event or body is over the limit of size"
        if self.reading.outputs > self._most_outputs:
            return f"over {self._most_outputs} events of output, far more than was asked for"
        return ""

    @property
    def _coding(self) -> str:
        """How the body is compressed, though ``identity`` alone was accepted: its events come when a block is full."""
        coding = self.http.headers.get("content-encoding", "").strip()
        return "" if coding.lower() in ("", "identity") else coding

    def _body(self, piece: bytes) -> None:
        """A piece of the body, from the parser."""
        self._body_s = self.last_s
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            self._overlong = True
        elif self._streaming:
            self._take_events(piece)
        else:
            self._first(piece)

    def _take_events(self, piece: bytes) -> None:
        take, now = self.reading.take, self.last_s
        for event in self._stream.feed(piece):
            take(event, now)

    def _first(self, piece: bytes) -> None:
        """Before it is known what the body is: an event stream never begins with a brace, a bracket or a tag."""
        if self._whole is None:
            piece = piece.lstrip()
            if not piece:
                return
            if 200 <= (self.http.status or 0) < 300 and piece[:1] not in b"{[<":
                self._streaming = True
                self._take_events(piece)
                return
            self._whole = bytearray()
        self._whole += piece

    def _close(self, ending: Ending) -> None:
        """Read what only the end makes whole, once."""
        if self._closed or not self._clean(ending):
            return
        self._closed = True
        if self._streaming:
            for event in self._stream.rest():
                if event.data.rstrip() == b"[DONE]" or _is_json(event.data):
                    self.reading.take(event, self._body_s)
        elif self._whole is not None and 200 <= (self.http.status or 0) < 300:
            self._take_whole(bytes(self._whole))

    def _take_whole(self, body: bytes) -> None:
        try:
            answer = orjson.loads(body)
        except ValueError:
            answer = None
        if isinstance(answer, list) and answer:
            answer = answer[0]
        if isinstance(answer, dict):
            self.reading.take_object(answer, self._body_s, Outcome.ERROR_IN_BODY)
        else:
            beginning = one_line(body[:80].decode("utf-8", "replace"))
            self.reading.fault = Outcome.BAD_EVENT, f"the answer is no JSON: {beginning!r}"

    def _clean(self, ending: Ending) -> bool:
        """Whether the body ended as HTTP ends one."""
        return self.http.complete or (self.http.until_close and ending is Ending.CLOSED)

    def _ended(self, ending: Ending) -> tuple[Outcome, str]:
        """The outcome of a good status and good events."""
        reading = self.reading
        if not (self._clean(ending) or reading.done):
            return _cut(ending)
        if reading.outputs:
            if reading.done or reading.finish_reason:
                return Outcome.COMPLETED, ""
            return Outcome.TRUNCATED, "the answer ended without a finish_reason and without [DONE]"
        if self._stream.other_lines and not reading.events:
            return Outcome.BAD_EVENT, "the answer is no event stream"
        if reading.events and not (reading.done or reading.finish_reason):
            return Outcome.TRUNCATED, "the answer ended without a token, a finish_reason or [DONE]"
        return Outcome.EMPTY, "the answer ended in good form without a token"


def _headless(ending: Ending) -> tuple[Outcome, str]:
    if ending is Ending.RESET:
        return Outcome.RESET, "the connection was reset before the answer's head was whole"
    return Outcome.RESET, "the server closed the connection before the answer's head was whole"


def _cut(ending: Ending) -> tuple[Outcome, str]:
    if ending is Ending.RESET:
        return Outcome.RESET, "the connection was reset inside the answer"
    return Outcome.TRUNCATED, "the connection closed inside the answer"


_BY_STATUS = {
    401: Outcome.UNAUTHORISED,
    403: Outcome.UNAUTHORISED,
    404: Outcome.NOT_FOUND,
    429: Outcome.RATE_LIMITED,
}
_BY_CLASS = {3: Outcome.REDIRECTED, 4: Outcome.CLIENT_ERROR, 5: Outcome.SERVER_ERROR}


def _by_status(status: int, headers: dict[str, str], body: bytes) -> tuple[Outcome, str]:
    """The outcome of a status that is not 2xx, with what the server said of it."""
    outcome = _BY_STATUS.get(status) or _BY_CLASS.get(status // 100, Outcome.PROTOCOL)
    said = f"to {headers.get('location', 'nowhere')}" if status // 100 == 3 else _said(body)
    return outcome, one_line(f"{status} {_phrase(status)}" + (f": {said}" if said else ""))


def _said(body: bytes) -> str:
    try:
        parsed = orjson.loads(body)
    except ValueError:
        return one_line(body[:2000].decode("utf-8", "replace"))
    return (error_in(parsed) or line_of(parsed)) if isinstance(parsed, dict) else one_line(str(parsed))


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except ValueError:
        return False
    return True
