"""One load at which a server is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """So many streams, a rate, a trace at its own rate, or so many sessions.

    ``kind`` says which; ``value`` is the streams, the requests/s or the sessions (a trace: its own rate).
    """

    kind: Literal["concurrency", "rate", "trace", "sessions"]
    value: float

    @property
    def concurrency(self) -> int | None:
        """Streams of a closed loop."""
        return int(self.value) if self.kind == "concurrency" else None

    @property
    def streams(self) -> int | None:
        """How many users send, wait and send again, each a stream or a conversation; None for an open loop."""
        return None if self.is_open else int(self.value)

    @property
    def rate_per_s(self) -> float | None:
        """Requests/s of an open loop."""
        return self.value if self.kind in ("rate", "trace") else None

    @property
    def is_open(self) -> bool:
        """Whether arrivals wait for nobody."""
        return self.kind in ("rate", "trace")

    @property
    def name(self) -> str:
        """For folders: ``concurrency-8``, ``rate-0.5``."""
        return f"{self.kind}-{self.value:g}"

    def __str__(self) -> str:
        """For people and conditions: ``8 streams``, ``0.5 requests/s``."""
        words = {"concurrency": "streams", "rate": "requests/s", "sessions": "sessions"}
        if self.kind == "trace":
            return f"the trace at {self.value:.3g} requests/s"
        unit = words[self.kind]
        return f"{self.value:g} {unit[:-1] if self.value == 1 and self.kind != 'rate' else unit}"
