"""How a request ended: one counted outcome for each, with its reason."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """Exactly one of these for each request. Only ``COMPLETED`` enters latencies; totals always add up."""

    COMPLETED = "completed"
    REFUSED = "refused"  # no connection: nobody listens, no such host, no route
    TLS = "tls"  # no trusted connection
    REDIRECTED = "redirected"  # 3xx, which is not followed
    UNAUTHORISED = "unauthorised"  # 401, 403
    NOT_FOUND = "not-found"  # 404: wrong path or model
    RATE_LIMITED = "rate-limited"  # 429
    CLIENT_ERROR = "client-error"  # any other 4xx
    SERVER_ERROR = "server-error"  # 5xx
    ERROR_IN_BODY = "error-in-body"  # status 200, and an error object as the whole body
    ERROR_IN_STREAM = "error-in-stream"  # status 200, and an error object as an event
    BAD_EVENT = "bad-event"  # an event that is no JSON of the kind
    PROTOCOL = "protocol"  # the bytes are no HTTP, or over a limit
    EMPTY = "empty"  # ended in good form without a token
    TRUNCATED = "truncated"  # ended without a finish reason and without [DONE], or inside a chunk
    RESET = "reset"  # the connection broke in the middle
    TIMED_OUT = "timed-out"  # see the reason for which wait
    CANCELLED = "cancelled"  # by the user or the end of the run
    LOST = "lost"  # with the worker process or the host that had sent it: no fault of the server
