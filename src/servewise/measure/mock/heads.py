"""Heads of answers."""

from __future__ import annotations

from servewise.measure.mock.shape import Shape

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


def stream_head(shape: Shape, length: int = 0) -> bytes:
    """The head of a stream, of ``length`` bytes where the shape says it."""
    lines = [f"HTTP/{shape.version} 200 OK", "server: mock", *([f"content-type: {shape.kind}"] if shape.kind else [])]
    lines += {"chunked": ["transfer-encoding: chunked"], "length": [f"content-length: {length}"]}.get(shape.framing, [])
    lines += ["connection: close"] if shape.closes == "said" or shape.framing == "close" else []
    return (INTERIM if shape.interim else b"") + ("\r\n".join(lines) + "\r\n\r\n").encode()


def head_of(
    status: int,
    phrase: str,
    length: int,
    *,
    kind: str = "application/json",
    closes: bool = False,
    more: tuple[str, ...] = (),
) -> bytes:
    """The head of an answer of known length."""
    lines = [f"HTTP/1.1 {status} {phrase}", "server: mock", f"content-type: {kind}", f"content-length: {length}", *more]
    return ("\r\n".join([*lines, "connection: close"] if closes else lines) + "\r\n\r\n").encode()
