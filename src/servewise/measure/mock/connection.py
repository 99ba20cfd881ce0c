"""One client of the stand-in server: its requests read, its answers' bytes kept until the socket takes them."""

from __future__ import annotations

import socket
import ssl
import time

import httptools

from servewise.measure.mock.log import RequestLog
from servewise.measure.mock.script import End
from servewise.measure.mock.stamp import Reading, read_stamped

READ_BYTES = 2**18
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Message:
    """A request that is being read; ``arrived`` once its last byte is here."""

    __slots__ = ("body", "headers", "keep_alive", "method", "path")

    def __init__(self) -> None:
        self.method, self.path, self.body, self.keep_alive = "", "", b"", True
        self.headers: dict[bytes, bytes] = {}


class Connection:
    """A socket with its parser. ``job`` is the answer that is under way, ``then`` what comes when all is sent."""

    __slots__ = ("_done", "_message", "_owed", "_parser", "_secured", "backlog", "job", "sock", "then")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.job: object | None = None
        self.then: End | None = None
        self.backlog = bytearray()
        self._owed: list[tuple[RequestLog, float, float, int]] = []
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._message = Message()
        self._done: Message | None = None
        self._secured = not isinstance(sock, ssl.SSLSocket)

    @property
    def open(self) -> bool:
        """Whether it has not been closed here."""
        return self._parser is not None

    def read(self) -> tuple[Reading, Message | None] | None:
        """What came: the reading (no data: the client has gone), and a request if one is whole now; None for nothing.

        Raises OSError where the connection broke, and httptools' errors where the bytes are no HTTP.
        """
        try:
            reading = self._reading()
        except _NOT_NOW:
            return None
        if reading is None:
            return None
        self._done = None
        if reading.data and self._parser is not None:
            self._parser.feed_data(reading.data)
        return reading, self._done

    def _reading(self) -> Reading | None:
        if isinstance(self.sock, ssl.SSLSocket):
            return self._secured_reading(self.sock)
        return read_stamped(self.sock, READ_BYTES)

    def _secured_reading(self, sock: ssl.SSLSocket) -> Reading | None:
        if not self._secured:
            sock.do_handshake()
            self._secured = True
        data = sock.recv(READ_BYTES)
        return Reading(data, time.monotonic(), "user")

    def send(self, data: bytes) -> bool:
        """Send what the socket takes, keep the rest; whether all is out. OSError where the connection broke."""
        if self.backlog:
            self.backlog += data
            return False
        try:
            sent = self.sock.send(data)
        except _NOT_NOW:
            sent = 0
        if sent == len(data):
            return True
        self.backlog += data[sent:]
        return False

    def owe(self, log: RequestLog, due_s: float, before_s: float, tokens: int) -> None:
        """Tokens that lie in the backlog: they are logged when it is out."""
        self._owed.append((log, due_s, before_s, tokens))

    def flush(self) -> list[tuple[RequestLog, float, float, int]] | None:
        """Send on; what was owed once all is out, None before."""
        try:
            del self.backlog[: self.sock.send(self.backlog)]
        except _NOT_NOW:
            return None
        if self.backlog:
            return None
        owed, self._owed = self._owed, []
        return owed

    def close(self, *, reset: bool = False) -> None:
        """End it, with a TCP reset or in good form."""
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self._parser = None
        self.sock.close()

    # what the parser calls
    def on_message_begin(self) -> None:
        """A request begins."""
        self._message = Message()

    def on_url(self, url: bytes) -> None:
        """Its path."""
        self._message.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of its head."""
        self._message.headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        """A part of its body."""
        self._message.body += body

    def on_message_complete(self) -> None:
        """It is whole."""
        if self._parser is not None:
            self._message.method = self._parser.get_method().decode("latin-1")
            self._message.keep_alive = self._parser.should_keep_alive()
        self._done = self._message
