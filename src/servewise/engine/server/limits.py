"""What the server takes at most: of a request, of a connection, and of all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.errors import InputError

LEAST_BODY_BYTES, MOST_BODY_BYTES = 1 << 20, 64 << 20
BODIES_BYTES = 256 << 20
BODY_BYTES_A_TOKEN = 256  # JSON's escapes and long tokens included; a body of several prompts fits too


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Of one request. ``prompt_tokens``, ``output_tokens`` None: what the context allows.

    ``choices`` counts prompts x n; ``stops`` stop strings of ``stop_characters`` at most.
    """

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    choices: int = 256
    stops: int = 16
    stop_characters: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of the server. ``queued``: choices that may wait beyond those that run; then the answer is 429.

    ``header_bytes`` and ``head_s``: a request's line and headers, and the time they may take from their first byte.
    ``body_bytes``, ``body_s``: its body. ``bodies_bytes``: all bodies that are being read together. ``idle_s``: a
    connection that says nothing, past the 60 s after which most clients and proxies close one themselves.
    ``unread_tokens``: what a stream's client may be behind. ``stalled_s``: how long a client may take nothing of what
    is sent. Both end the stream and free its blocks.
    """

    queued: int = 256
    connections: int = 1000
    header_bytes: int = 65_536
    head_s: float = 10.0
    body_bytes: int = 16 << 20
    body_s: float = 60.0
    bodies_bytes: int = BODIES_BYTES
    idle_s: float = 65.0
    unread_tokens: int = 4096
    stalled_s: float = 30.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            least = 0 if name == "queued" else 1e-3
            if not getattr(self, name) >= least:
                raise InputError(f"must be {least:g} or more", where=name.replace("_", " "))


def body_bytes_for(context_tokens: int) -> int:
    """Bytes of a body that any prompt of ``context_tokens`` fits into: 1 MiB to 64 MiB."""
    return min(max(LEAST_BODY_BYTES, BODY_BYTES_A_TOKEN * context_tokens), MOST_BODY_BYTES)
