"""A server for tests: each connection is handled by a function of the test, in a thread, with plain sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

Handler = Callable[[socket.socket], None]


def read_request(peer: socket.socket) -> bytes:
    """One whole request; empty at the connection's end."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    while len(body) < length:
        body += peer.recv(65536)
    return head + b"\r\n\r\n" + body


@contextlib.contextmanager
def served(*handlers: Handler) -> Iterator[str]:
    """The address of a server whose nth connection is handled by the nth handler, and all later ones by the last."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        threads: list[threading.Thread] = []
        taker = threading.Thread(target=_accept, args=(listener, handlers, threads), daemon=True)
        taker.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        taker.join(5)
        for thread in threads:
            thread.join(5)


def _accept(listener: socket.socket, handlers: tuple[Handler, ...], threads: list[threading.Thread]) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        handler = handlers[min(len(threads), len(handlers) - 1)]
        thread = threading.Thread(target=_handle, args=(handler, peer), daemon=True)
        threads.append(thread)
        thread.start()


def _handle(handler: Handler, peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with peer, contextlib.suppress(OSError):
        handler(peer)


def chunk(data: bytes) -> bytes:
    """An HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def event(text: str, finish: str = "null") -> bytes:
    """A chunk with one chat event."""
    return chunk(
        b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]}\n\n'
        % (text.encode(), finish.encode())
    )
