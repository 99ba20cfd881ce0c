"""The server that is measured, and how long to wait for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Api = Literal["chat", "completions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long nothing may come [s]: until connected, until the first byte of the answer, between two reads, in all."""

    connect_s: float = 10.0
    first_byte_s: float = 300.0
    idle_s: float = 120.0
    total_s: float = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One endpoint of one server.

    ``path`` is the endpoint's own (``/v1/chat/completions``); ``metrics_path`` where the server's metrics stand.
    ``key`` goes into the authorization header and nowhere else: it is never shown, logged or kept.
    ``keep_alive``: connections are used again for later requests.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str
    model: str
    api: Api
    key: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    verify_tls: bool = True
    keep_alive: bool = True
    metrics_path: str = "/metrics"
    timeouts: Timeouts = Timeouts()

    @property
    def origin(self) -> str:
        """Scheme, host and port, for messages and records."""
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"
