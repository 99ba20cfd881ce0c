"""The socket and the life of the HTTP server: bound before the first request, stopped gracefully by a signal."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from math import inf
from types import FrameType

import uvicorn

from servewise.engine.server.app import Api
from servewise.engine.server.protocol import GuardedProtocol
from servewise.errors import InputError

SIGNALS = (signal.SIGINT, signal.SIGTERM)
KERNEL_BYTES = 128 << 10  # unsent bytes that the kernel may hold of a connection, not the megabytes that it would take
LAST_WORDS_S = 1.0  # for replies to say that they failed, when the grace is over


def bound(host: str, port: int) -> socket.socket:
    """A listening socket on ``host``; port 0 is any free one. Raises InputError where it cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"cannot listen: {reason.lower()}", where=f"{host}:{port}", hint="another --port; 0 takes any free one"
        ) from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)  # connections inherit it
    return listener


def address_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ip_address(listener.getsockname()[0]).is_loopback


class HttpServer(uvicorn.Server):
    """uvicorn over one socket. The first signal stops it gracefully, a second one at once; it returns either way.

    Graceful: it still listens, says that it is not ready and takes no new requests; those that run have ``grace_s``
    seconds, then they end as failed. It returns when the last one has ended.
    """

    def __init__(self, api: Api, listener: socket.socket, *, grace_s: int = 30) -> None:
        self.api, self.listener, self._grace_s = api, listener, grace_s
        self._until = inf  # when the grace is over [monotonic s]
        super().__init__(
            uvicorn.Config(
                api.application(),
                http=partial(GuardedProtocol, api.limits, api.watched),  # type: ignore[arg-type] # any maker will do
                ws="none",
                proxy_headers=False,
                loop="asyncio",
                lifespan="on",
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_keep_alive=round(api.limits.idle_s),
                timeout_graceful_shutdown=grace_s,
                h11_max_incomplete_event_size=api.limits.header_bytes,
            )
        )

    @property
    def stopping(self) -> bool:
        """Whether it takes no more requests."""
        return self._until < inf

    def serve_until_stopped(self) -> None:
        """Serve; returns after a signal, or after ``stop``, or after ``should_exit`` is set."""
        self.run([self.listener])

    def stop(self) -> None:
        """Stop gracefully; from any thread, or a signal's handler."""
        self._until = min(self._until, time.monotonic() + self._grace_s)
        self.api.door.close()

    async def on_tick(self, counter: int) -> bool:
        """uvicorn asks every 0.1 s whether to end."""
        if self.stopping and not self.should_exit:
            self.api.driver.drain()
            over = time.monotonic() >= self._until
            if over:
                self.api.driver.abandon()
            self.should_exit = over or not self.server_state.tasks
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: what runs has what is left of the grace, and nothing after a second signal; then connections break."""
        self.stop()
        self.api.driver.drain()
        left_s = max(self._until - time.monotonic(), LAST_WORDS_S)
        if self.force_exit:
            left_s, self.force_exit = 0.0, False
            self.api.driver.patience_s = LAST_WORDS_S
        asyncio.get_running_loop().call_later(left_s, self._break_off)
        self.config.timeout_graceful_shutdown = math.ceil(left_s + LAST_WORDS_S)
        await super().shutdown(sockets)

    def _break_off(self) -> None:
        """Every handler hears that its client has gone, and ends."""
        for each in list(self.server_state.connections):
            each.transport.abort()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals end the serving and nothing else: uvicorn would raise them again when it is done."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """A signal: the second one does not wait."""
        self.force_exit = self.should_exit = self.stopping or self.should_exit
        self.stop()
