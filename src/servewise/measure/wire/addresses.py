"""Where a host stands: its addresses, looked up once a run."""

from __future__ import annotations

import socket

from servewise.measure.target import Target
from servewise.measure.wire.connection import Address


def addresses_of(target: Target) -> tuple[Address, ...]:
    """All stream addresses of the target in the system's order. Raises OSError or UnicodeError for no such host."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys((family, where) for family, _, _, _, where in found))  # type: ignore[misc]
