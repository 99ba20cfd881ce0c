"""The socket and the life of the HTTP server: bound before the first request, stopped gracefully by a signal."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import ip_address
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from servewise.engine.server.driver import Driver
from servewise.errors import InputError

SIGNALS = (signal.SIGINT, signal.SIGTERM)
KEEP_ALIVE_S = 65  # past the 60 s after which most clients and proxies close an idle connection themselves


def bound(host: str, port: int) -> socket.socket:
    """A listening socket on ``host``; port 0 is any free one. Raises InputError where it cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"cannot listen: {reason.lower()}", where=f"{host}:{port}", hint="another --port; 0 takes any free one"
        ) from None


def address_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ip_address(listener.getsockname()[0]).is_loopback


class HttpServer(uvicorn.Server):
    """uvicorn over one socket. The first signal stops it gracefully, a second one at once; it returns either way.

    Graceful: no new requests are taken, those that run have ``grace_s`` seconds, then they end as failed.
    """

    def __init__(self, app: Starlette, driver: Driver, listener: socket.socket, *, grace_s: int = 30) -> None:
        self._driver, self.listener = driver, listener
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=grace_s,
            )
        )

    def serve_until_stopped(self) -> None:
        """Serve; returns after a signal, or after ``should_exit`` is set."""
        self.run([self.listener])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: what waits for company to fill a batch need not wait any more."""
        self._driver.drain()
        await super().shutdown(sockets)

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
        self.force_exit = self.should_exit
        self.should_exit = True
