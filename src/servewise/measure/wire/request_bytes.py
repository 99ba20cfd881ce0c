"""The bytes of a request."""

from __future__ import annotations

from collections.abc import Callable

from servewise.measure.target import Target
from servewise.version import __version__


def request_writer(target: Target) -> Callable[[bytes], bytes]:
    """A function from a JSON body to the whole request, head made once for all."""
    lines = [
        f"POST {target.path} HTTP/1.1",
        f"Host: {target.origin.split('://')[1]}",
        f"User-Agent: servewise/{__version__}",
        "Content-Type: application/json",
        "Accept: text/event-stream, application/json",
        "Accept-Encoding: identity",
        f"Connection: {'keep-alive' if target.keep_alive else 'close'}",
        *([f"Authorization: Bearer {target.key}"] if target.key is not None else []),
        *(f"{name}: {value}" for name, value in target.headers),
    ]
    head = ("\r\n".join(lines) + "\r\nContent-Length: ").encode("ascii")

    def written(body: bytes) -> bytes:
        return b"%b%d\r\n\r\n%b" % (head, len(body), body)

    return written
