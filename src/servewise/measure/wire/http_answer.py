"""One HTTP/1.1 answer read from bytes that may be cut anywhere; no sockets here."""

from __future__ import annotations

from collections.abc import Callable

import httptools

HEAD_LIMIT_BYTES = 64 * 1024


class HttpAnswer:
    """Feed it the bytes; it calls ``on_body`` with each piece of the body and keeps what the head said.

    ``fault`` is one line where the bytes are no HTTP. ``complete``: the body's end was seen. ``until_close``: only
    the connection's end can end it. ``keep_alive``: the connection may be used again. Interim (1xx) answers are passed
    over. What is no body (heads, the extensions of chunks, trailers) is bounded: the parser keeps it.
    """

    def __init__(self, on_body: Callable[[bytes], None]) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.complete = False
        self.until_close = False
        self.chunked = False
        self.keep_alive = False
        self.fault = ""
        self._on_body = on_body
        self._bodiless_bytes = 0  # since the last piece of body
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Read on. What comes after the answer's end spoils the connection, not the answer."""
        if self.complete:
            self.keep_alive = False
            return
        self._bodiless_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._spoil("the server switched to another protocol")
        except Exception as error:  # every error of the parser derives from Exception alone
            self._spoil(f"the answer is no HTTP: {error}")
        if self._bodiless_bytes > HEAD_LIMIT_BYTES and not self.complete:
            what = "head is" if self.status is None else "chunk heads or trailers are"
            self._spoil(f"the answer's {what} over {HEAD_LIMIT_BYTES} bytes")

    def release(self) -> None:
        """Let go of the parser, which refers back to this object: nothing is left for the garbage collector."""
        del self._parser, self._on_body

    def on_body(self, piece: bytes) -> None:
        """Called by the parser."""
        self._bodiless_bytes = 0
        self._on_body(piece)

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Called by the parser; trailers after the body are passed over."""
        if self.status is None:
            self.headers[name.decode("latin-1").lower()] = (value or b"").decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        status = self._parser.get_status_code()
        if status < 200:
            self.headers.clear()
            return
        self.status = status
        self.chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        self.until_close = not self.chunked and "content-length" not in self.headers and status not in (204, 304)

    def on_message_begin(self) -> None:
        """Called by the parser: after a whole answer it is a surplus one, and reading stops."""
        if self.complete:
            self.keep_alive = False
            raise ValueError("bytes after the answer")

    def on_message_complete(self) -> None:
        """Called by the parser, after an interim answer too."""
        if self.status is not None and not self.complete:
            self.complete = True
            self.keep_alive = bool(self._parser.should_keep_alive())

    def _spoil(self, fault: str) -> None:
        self.keep_alive = False
        if not self.complete:
            self.fault = self.fault or fault
