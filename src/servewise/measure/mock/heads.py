"""Heads of answers."""

from __future__ import annotations

from servewise.measure.mock.shape import Shape


def stream_head(shape: Shape) -> bytes:
    """The head of a stream."""
    lines = ["HTTP/1.1 200 OK", "server: mock", "content-type: text/event-stream; charset=utf-8"]
    lines += ["transfer-encoding: chunked"] if shape.framing == "chunked" else []
    lines += ["connection: close"] if shape.closes == "said" or shape.framing == "close" else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


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
