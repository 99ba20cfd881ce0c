"""Static batching: wait for a full batch, run it until its longest sequence ends, release all together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Static:
    """``batch`` sequences at once."""

    batch: int = 8
