"""A small document of a server: its metrics, its models."""

from __future__ import annotations

import select
from time import monotonic

from servewise.errors import RunFailed
from servewise.measure.dialect.fault import one_line
from servewise.measure.hiding import hidden, secrets_of
from servewise.measure.target import Target
from servewise.measure.wire.addresses import addresses_of
from servewise.measure.wire.connection import Address, Connection
from servewise.measure.wire.http_answer import HttpAnswer
from servewise.measure.wire.poller import READ, WRITE
from servewise.measure.wire.tls import Tls, tls_context
from servewise.version import __version__

LIMIT_BYTES = 16 * 1024 * 1024


def get(target: Target, path: str, *, timeout_s: float = 10.0) -> bytes:
    """The body at ``path`` on the target's server. RunFailed for anything but a 200 within time and size.

    ``timeout_s`` is for all of it, however the server drips (only the look-up of its name has the system's own time).
    """
    where = target.origin + path
    try:
        status, body = _from_any(target, _request(target, path), monotonic() + timeout_s)
    except (OSError, UnicodeError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise RunFailed(f"{where}: {hidden(one_line(said), secrets_of(target))}") from error
    if status != 200:
        raise RunFailed(f"{where}: the server answered {status}")
    return body


def _request(target: Target, path: str) -> bytes:
    own = [("Authorization", f"Bearer {target.key}")] if target.key is not None else []
    fields = [
        ("Host", target.origin.split("://")[1]),
        ("User-Agent", f"servewise/{__version__}"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
        *own,
        *target.headers,
    ]
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def _from_any(target: Target, request: bytes, until_s: float) -> tuple[int, bytes]:
    """Status and body, from the first of the host's addresses that takes a connection."""
    context = tls_context(target) if target.scheme == "https" else None
    refused: OSError = OSError("the host has no address")
    for address in addresses_of(target):
        try:
            connection = _connected(address, Tls(context, target.host) if context else None, until_s)
        except OSError as error:
            refused = error
            continue
        try:
            return _answered(connection, request, until_s)
        finally:
            connection.close()
    raise refused


def _connected(address: Address, tls: Tls | None, until_s: float) -> Connection:
    connection = Connection(address, tls)
    try:
        _await(connection, WRITE, until_s)
        connection.connected()
        while not connection.ready:
            data = _received(connection, until_s)
            if not data:
                raise OSError("the server closed the connection during the handshake")
            connection.shake_hands(data)
    except BaseException:
        connection.close()
        raise
    return connection


def _answered(connection: Connection, request: bytes, until_s: float) -> tuple[int, bytes]:
    connection.offer(request)
    while not connection.flush():
        _await(connection, WRITE, until_s)
    body = bytearray()
    http = HttpAnswer(body.extend)
    try:
        while not http.complete:
            data = _received(connection, until_s)
            if not data:
                break
            http.feed(connection.plain(data))
            if http.fault:
                raise OSError(http.fault)
            if len(body) > LIMIT_BYTES:
                raise OSError(f"the answer is over {LIMIT_BYTES} bytes")
        if http.status is None:
            raise OSError("the server closed the connection without an answer")
        if not (http.complete or http.until_close):
            raise OSError("the answer was cut off before its end")
        return http.status, bytes(body)
    finally:
        http.release()


def _received(connection: Connection, until_s: float) -> bytes:
    """What comes next; empty at the connection's end."""
    while True:
        _await(connection, READ, until_s)
        try:
            return connection.receive()[0]
        except BlockingIOError:  # woken by the stamp of what was sent
            connection.departed_ns()


def _await(connection: Connection, what: int, until_s: float) -> None:
    """Wait until the socket is ready, or for no longer."""
    poll = select.poll()
    poll.register(connection.sock.fileno(), what)
    left_s = until_s - monotonic()
    if left_s <= 0 or not poll.poll(left_s * 1e3):
        raise OSError("the answer did not end in time")
