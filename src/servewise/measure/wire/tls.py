"""TLS over bytes: the socket stays the client's own, so that encrypted data keeps the kernel's arrival times."""

from __future__ import annotations

import ssl

from servewise.measure.target import Target

READ_BYTES = 65536


def tls_context(target: Target) -> ssl.SSLContext:
    """The system's trusted roots, or no check at all where the user asked for none."""
    context = ssl.create_default_context()
    if not target.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


class Tls:
    """One TLS session: encrypted bytes in and out, plain bytes out and in. Raises ssl.SSLError."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def shake_hands(self, received: bytes = b"") -> bool:
        """Go on with the handshake; True once it is done. Call ``to_send`` after each."""
        self._incoming.write(received)
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def encrypted(self, plain: bytes) -> bytes:
        """What to send for ``plain``."""
        self._session.write(plain)
        return self.to_send()

    def to_send(self) -> bytes:
        """What the session itself wants to send."""
        return self._outgoing.read()

    def decrypted(self, received: bytes) -> bytes:
        """The plain bytes that are whole by now; may be empty (a part of a record, a session ticket)."""
        self._incoming.write(received)
        pieces = []
        try:
            while piece := self._session.read(READ_BYTES):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            pass  # the peer says that it ends; the socket's own end follows
        return b"".join(pieces)
