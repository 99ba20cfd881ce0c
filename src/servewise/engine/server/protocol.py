"""One connection, guarded: uvicorn's HTTP/1.1 over h11, with a time for everything that a client owes us.

uvicorn waits for ever for the rest of a request (slow loris) and for a reader that does not read, and its own errors
are plain text. Here a timer runs while bytes are owed, whichever side owes them, and errors are OpenAI's.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from servewise.engine.server.fault import Fault
from servewise.engine.server.limits import Limits

ABORT = "servewise.abort"  # in the scope's extensions: ends the connection at once, sent or not
LEAST_BYTES_S = 1024  # what a client that is behind must take, or it counts as stalled
PEER_LOST_S = 60  # a peer that acknowledges nothing for so long is gone


class Watched:
    """What the connections tell ``/metrics``: counts by what became of them."""

    def __init__(self) -> None:
        self.counts = {"invalid": 0, "timed_out": 0, "stalled": 0, "behind": 0, "refused": 0}

    def behind(self, transport: asyncio.Transport) -> None:
        """End a connection whose client is too far behind its stream."""
        self.counts["behind"] += 1
        transport.abort()


class StrictConnection(h11.Connection):
    """Refuses two heads that h11 takes: one that is too long but came in one piece, and one with two lengths.

    Of a body with both a length and chunks, a proxy may see another end than we do: what is behind it would be another
    client's request (RFC 9112, section 6.3: an error, and no more on that connection).
    """

    def __init__(self, head_bytes: int) -> None:
        super().__init__(h11.SERVER, head_bytes)
        self._head_bytes = head_bytes

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """What came; RemoteProtocolError for what is refused."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            size = len(event.target) + sum(len(name) + len(value) + 4 for name, value in event.headers)
            if size > self._head_bytes:
                raise h11.RemoteProtocolError("too long a head", error_status_hint=431)
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                raise h11.RemoteProtocolError("a body of two lengths")
        return event


class GuardedProtocol(H11Protocol):
    """See the module. ``_phase``: what the client owes: nothing, a word (idle), a head, a body."""

    def __init__(self, limits: Limits, watched: Watched, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._limits, self._watched = limits, watched
        self.conn = StrictConnection(limits.header_bytes)
        self._phase: tuple[str, object] = ("", None)
        self._since_s = 0.0
        self._owed: asyncio.TimerHandle | None = None
        self._unsent: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came; the longest silent one makes room where there are too many."""
        super().connection_made(transport)
        self.app = partial(_with_abort, self.app, partial(self._watched.behind, transport))
        transport.set_write_buffer_limits(high=0)  # any unsent byte pauses the writer and starts the stall's timer
        _keep_alive(transport.get_extra_info("socket"))
        if len(self.connections) > self._limits.connections and not self._room_made():
            self._watched.counts["refused"] += 1
            self._say(Fault("too many connections", status=503, code="overloaded", headers={"retry-after": "1"}))
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        for timer in (self._owed, self._unsent):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        # Refers to us, as we to it: it would wait for a full collection, which is rare beside a model's many objects.
        self.cycle = None  # type: ignore[assignment] # uvicorn has it None before the first request, too

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """An answer is sent, or in the transport's hands."""
        super().on_response_complete()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP, or has too long a head: said in OpenAI's form, and nothing of it is quoted."""
        status = getattr(sys.exception(), "error_status_hint", 400)
        self._watched.counts["invalid"] += 1
        message = "the request's head is too long" if status == 431 else msg.rstrip(".").lower()
        self._say(Fault(message, status=status, code="invalid_http"))

    def pause_writing(self) -> None:
        """Something is unsent: whoever writes waits, and the client has ``stalled_s`` to take it."""
        super().pause_writing()
        self._arm_unsent()

    def resume_writing(self) -> None:
        """All is sent."""
        super().resume_writing()
        if self._unsent is not None:
            self._unsent.cancel()
            self._unsent = None

    def _arm_unsent(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unsent = self.loop.call_later(self._limits.stalled_s, self._check_unsent, left)

    def _check_unsent(self, before: int) -> None:
        """Unsent for ``stalled_s``: the client must have taken 1 KiB/s of it at least."""
        if before - self.transport.get_write_buffer_size() >= LEAST_BYTES_S * self._limits.stalled_s:
            self._arm_unsent()
            return
        self._watched.counts["stalled"] += 1
        self.transport.abort()

    def _watch(self) -> None:
        """Start the timer of what the client owes now; one that runs for it already runs on."""
        phase = (self._owes(), self.cycle)
        if phase == self._phase:
            return
        self._phase, self._since_s = phase, self.loop.time()
        if self._owed is not None:
            self._owed.cancel()
            self._owed = None
        limits = self._limits
        seconds = {"word": limits.idle_s, "head": limits.head_s, "body": limits.body_s + 1.0}.get(phase[0])
        if seconds is not None and not self.transport.is_closing():
            self._owed = self.loop.call_later(seconds, self._late)

    def _owes(self) -> str:
        if self.conn.their_state is h11.IDLE:
            return "head" if self.conn.trailing_data[0] else "word"
        return "body" if self.conn.their_state is h11.SEND_BODY else ""

    def _late(self) -> None:
        """What was owed did not come."""
        if self._phase[0] == "head":
            self._watched.counts["timed_out"] += 1
            self._say(Fault("the request's head took too long", status=408, code="timeout"))
        elif self._phase[0] == "body":
            self._watched.counts["timed_out"] += 1
            self.transport.abort()
        else:
            self.transport.close()

    def _room_made(self) -> bool:
        """Close the connection that has been silent for longest, if there is one."""
        others = [each for each in self.connections if isinstance(each, GuardedProtocol) and each is not self]
        silent = [each for each in others if each._owes() == "word" and not each.transport.is_closing()]
        closing = sum(each.transport.is_closing() for each in others)
        if len(self.connections) - closing <= self._limits.connections:
            return True
        if silent:
            min(silent, key=lambda each: each._since_s).transport.close()
        return bool(silent)

    def _say(self, fault: Fault) -> None:
        """Answer outside of any request, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = fault.text().encode()
            headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            lines = [f"{name}: {value}" for name, value in (headers | fault.headers).items()]
            head = f"HTTP/1.1 {fault.status} {HTTPStatus(fault.status).phrase}\r\n" + "\r\n".join(lines)
            self.transport.write(head.encode() + b"\r\n\r\n" + body)
        self.transport.close()


async def _with_abort(app: ASGIApp, abort: Callable[[], None], scope: Scope, receive: Receive, send: Send) -> None:
    scope.setdefault("extensions", {})[ABORT] = abort
    await app(scope, receive, send)


def _keep_alive(connection: socket.socket | None) -> None:
    """Ask the kernel to notice a peer that vanished without a word (a lost network, a machine that died)."""
    if connection is None:
        return
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, PEER_LOST_S * 1000)
