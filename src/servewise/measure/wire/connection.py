"""One non-blocking TCP connection, plain or TLS, whose arrivals the kernel stamps where it can."""

from __future__ import annotations

import os
import socket

from servewise.measure.wire import stamping
from servewise.measure.wire.tls import Tls

READ_BYTES = 65536
Address = tuple[socket.AddressFamily, tuple[str, int]]


class Connection:
    """A connection that was asked for: ``connected`` tells how it went, then ``offer`` and ``flush`` send.

    All raise OSError (ssl.SSLError is one) as the system tells it. ``stamped``: whether arrivals carry kernel times.
    """

    __slots__ = ("_handshaken", "_outgoing", "_tls", "reader", "sock", "stamped")

    def __init__(self, address: Address, tls: Tls | None = None) -> None:
        family, where = address
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            self.sock.setblocking(False)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.stamped = stamping.switch_on(self.sock)
            self.sock.connect(where)
        except BlockingIOError:
            pass
        except OSError:
            self.sock.close()
            raise
        self.reader = self.sock.recvmsg
        self._tls = tls
        self._handshaken = tls is None
        self._outgoing = memoryview(b"")

    def connected(self) -> None:
        """Called when the socket became writable: raises what went wrong; begins the TLS handshake."""
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        if self._tls:
            self.shake_hands(b"")

    def shake_hands(self, received: bytes) -> bool:
        """Go on with TLS; True when plain bytes may be sent."""
        assert self._tls is not None
        self._handshaken = self._tls.shake_hands(received)
        self._outgoing = memoryview(bytes(self._outgoing) + self._tls.to_send())
        self.flush()
        return self._handshaken

    @property
    def ready(self) -> bool:
        """Whether a request may be sent."""
        return self._handshaken

    @property
    def encrypted(self) -> bool:
        """Whether received bytes must go through ``plain``."""
        return self._tls is not None

    def offer(self, data: bytes) -> None:
        """What to send next."""
        self._outgoing = memoryview(self._tls.encrypted(data) if self._tls else data)

    def flush(self) -> bool:
        """Send what the socket takes now; True when nothing is left."""
        while self._outgoing:
            try:
                sent = self.sock.send(self._outgoing)
            except BlockingIOError:
                return False
            self._outgoing = self._outgoing[sent:]
        return True

    def departed_ns(self) -> int | None:
        """Wall-clock time [ns] at which what was sent last had left; None where it is not known (yet)."""
        return stamping.departure_ns(self.sock) if self.stamped else None

    def receive(self) -> tuple[bytes, stamping.Ancillary]:
        """The bytes that have come, as they came, with the kernel's stamp of the last; empty at the end."""
        data, ancillary, _, _ = self.reader(READ_BYTES, stamping.ANCILLARY_BYTES)
        return data, ancillary

    def spoken(self) -> bool:
        """Whether there is something to read, or the end; what is there stays."""
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def plain(self, received: bytes) -> bytes:
        """The plain bytes within what was received."""
        return self._tls.decrypted(received) if self._tls else received

    def close(self) -> None:
        """Close the socket; never raises."""
        del self.reader
        self.sock.close()
