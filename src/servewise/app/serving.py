"""The page's server on a socket of loopback, until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from servewise.app.jobs import Ask
from servewise.errors import InputError

HOST = "127.0.0.1"


def bound(port: int) -> socket.socket:
    """A listening socket on loopback; 0 takes any free port. Raises InputError where it is taken or no port."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
    except (OSError, OverflowError) as error:
        found.close()
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "is no port"
        raise InputError(f"port {port}: {reason}", where="port", hint="give another with --port") from error
    found.listen(128)
    return found


def serve(listening: socket.socket, ask: Ask, *, preload: Sequence[str] = (), runs: Sequence[str] = ()) -> None:
    """Serve the page on ``listening`` until a signal comes."""
    import uvicorn

    from servewise.app.server import page_app

    app = page_app(ask, port=listening.getsockname()[1], preload=preload, runs=runs)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[listening])
