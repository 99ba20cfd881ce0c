"""What the stand-in server can do wrong to a request."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """One way to fail. A stream's fault comes when half of its tokens are out, unless the name says otherwise."""

    # instead of an answer
    RESET_AT_ONCE = "reset-at-once"
    CLOSE_AT_ONCE = "close-at-once"
    SILENT = "silent"  # never answers, never closes
    # a status of its own
    BAD_REQUEST = "400"
    UNAUTHORISED = "401"
    FORBIDDEN = "403"
    NOT_FOUND = "404"
    RATE_LIMITED = "429"
    RATE_LIMITED_ONCE = "429-once"  # the first time that this body comes; then it is served
    REDIRECT = "307"
    SERVER_ERROR = "500"
    UNAVAILABLE = "503"
    # a bad head
    HUGE_HEAD = "huge-head"  # one field of a megabyte
    NOT_HTTP = "not-http"
    ENDLESS_HEAD = "endless-head"  # field after field
    HEAD_CUT = "head-cut"
    HEAD_RESET = "head-reset"
    HEAD_STALL = "head-stall"  # half a head, and nothing more
    # 200, and no stream
    ERROR_BODY = "error-body"
    EMPTY_BODY = "empty-body"
    HTML_BODY = "html-body"
    # 200, and a stream gone wrong
    ERROR_EVENT = "error-event"
    ERROR_EVENT_FIRST = "error-event-first"
    WRONG_JSON = "wrong-json"
    BAD_UTF8 = "bad-utf8"
    NOT_AN_OBJECT = "not-an-object"  # JSON, but of no kind that belongs there
    HALF_EVENT = "half-event"  # then the connection is closed
    HALF_EVENT_ENDED = "half-event-ended"  # then the body ends in good form
    HALF_EVENT_STALL = "half-event-stall"  # then nothing more comes
    GZIP = "gzip"  # compressed, though only identity is accepted
    RESET = "reset"
    RESET_BEFORE_DONE = "reset-before-done"  # after the last token and its finish reason
    CLOSE = "close"  # after a whole chunk, without the last one
    STALL = "stall"  # nothing more comes, and nothing closes
    STALL_FIRST = "stall-first"  # a head, and nothing more
    EMPTY_STREAM = "empty-stream"  # [DONE] alone
    CUT_SHORT = "cut-short"  # ends in good form, without finish reason and without [DONE]
    ENDLESS_EVENT = "endless-event"  # one line of 20 MiB
    ENDLESS_LINES = "endless-lines"  # data line after data line, and no end of the event
    ENDLESS_STREAM = "endless-stream"  # token after token, far beyond what was asked for
    ENDLESS_TRAILER = "endless-trailer"  # after the body
    BAD_CHUNK = "bad-chunk"  # a chunk size that is no number
    LONG_CHUNK = "long-chunk"  # a chunk that is shorter than it says, then the connection is closed
    SHORT_CHUNK = "short-chunk"  # one that is longer than it says
    LONG_LENGTH = "long-length"  # content-length says more than comes, then the connection is closed
    SHORT_LENGTH = "short-length"  # content-length ends the body in the middle
    # the server itself
    DIE = "die"  # the whole process ends in the middle of this answer


def fault_named(name: str) -> Fault | None:
    """The fault of that name; None where there is none."""
    return Fault(name) if name in _NAMES else None


_NAMES = frozenset(each.value for each in Fault)
