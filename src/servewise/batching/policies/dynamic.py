"""Dynamic batching: as static, but a batch also starts once its first request has waited for a window."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dynamic:
    """``batch`` sequences at once, or fewer once the oldest has waited ``window_s`` seconds."""

    batch: int = 8
    window_s: float = 0.05
