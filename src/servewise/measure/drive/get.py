"""A small document of a server: its metrics, its models."""

from __future__ import annotations

import http.client
from time import monotonic

from servewise.errors import RunFailed
from servewise.measure.dialect.fault import one_line
from servewise.measure.hiding import hidden, secrets_of
from servewise.measure.target import Target
from servewise.measure.wire.tls import tls_context

LIMIT_BYTES = 16 * 1024 * 1024
PIECE_BYTES = 64 * 1024


def get(target: Target, path: str, *, timeout_s: float = 10.0) -> bytes:
    """The body at ``path`` on the target's server. RunFailed for anything but a 200 within time and size."""
    where = target.origin + path
    connection: http.client.HTTPConnection
    if target.scheme == "https":
        connection = http.client.HTTPSConnection(
            target.host, target.port, timeout=timeout_s, context=tls_context(target)
        )
    else:
        connection = http.client.HTTPConnection(target.host, target.port, timeout=timeout_s)
    try:
        connection.request("GET", path, headers=_headers(target))
        answer = connection.getresponse()
        body = _bounded(answer, monotonic() + timeout_s, where)
    except (OSError, http.client.HTTPException, UnicodeError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise RunFailed(f"{where}: {one_line(said)}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise RunFailed(
            f"{where}: the server answered {answer.status} {hidden(one_line(answer.reason), secrets_of(target))}"
        )
    return body


def _headers(target: Target) -> dict[str, str]:
    own = {"Authorization": f"Bearer {target.key}"} if target.key is not None else {}
    return {"Accept-Encoding": "identity", "Connection": "close", **own, **dict(target.headers)}


def _bounded(answer: http.client.HTTPResponse, until_s: float, where: str) -> bytes:
    pieces: list[bytes] = []
    left = LIMIT_BYTES
    while piece := answer.read1(min(PIECE_BYTES, left + 1)):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise RunFailed(f"{where}: the answer is over {LIMIT_BYTES} bytes")
        if monotonic() > until_s:
            raise RunFailed(f"{where}: the answer did not end in time")
    if answer.length:
        raise RunFailed(f"{where}: the answer was cut off {answer.length} bytes before its end")
    return b"".join(pieces)
