"""An answer, written down before it is given: which bytes leave when, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class End(Enum):
    """What becomes of the connection after an answer."""

    KEEP = "keep"
    CLOSE = "close"
    RESET = "reset"
    STALL = "stall"
    DIE = "die"


class Write(NamedTuple):
    """Bytes that leave together ``after_s`` [s] from the start of service, ending an event with ``tokens`` tokens."""

    after_s: float
    data: bytes
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """``at_once`` leaves when the request is read, the ``writes`` in their times, then comes the ``end``.

    ``tokens`` is what it was to have in all; 0 for what is no generation. ``name``: of what stands in its place.
    """

    at_once: bytes = b""
    writes: tuple[Write, ...] = field(default=())
    end: End = End.KEEP
    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    name: str = ""
