"""What the stand-in server truly did: when each request came, and when each of its tokens left."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Literal


def _floats() -> array[float]:
    return array("d")


def _wholes() -> array[int]:
    return array("l")


@dataclass(slots=True)
class RequestLog:
    """One request, in order of arrival; times in seconds on the monotonic clock, NaN where it never came to that.

    ``arrived_s``: its last byte (``stamped`` says by whose clock); ``read_s``: when this program saw it;
    ``started_s``: when its service began. ``sent_s``: for each write that completed tokens, when the system call
    returned, ``before_s`` when it was called (the truth lies between), ``due_s`` when it was to be, ``told`` how many
    tokens it completed. ``user`` is the request's own mark. ``name``: shape, fault or status, empty for a plain one.
    """

    serial: int
    arrived_s: float
    read_s: float
    stamped: Literal["kernel", "user"]
    user: str | None = None
    name: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    started_s: float = nan
    ended: Literal["open", "whole", "cut", "gone", "refused"] = "open"
    ended_s: float = nan
    due_s: array[float] = field(default_factory=_floats)
    before_s: array[float] = field(default_factory=_floats)
    sent_s: array[float] = field(default_factory=_floats)
    told: array[int] = field(default_factory=_wholes)

    @property
    def ttft_s(self) -> float:
        """From the request's last byte to the first token's."""
        return self.sent_s[0] - self.arrived_s if self.sent_s else nan

    @property
    def tpot_s(self) -> float:
        """(last - first) / (N - tokens in the first event); NaN for an answer of one event."""
        after_first = sum(self.told) - self.told[0] if self.told else 0
        return (self.sent_s[-1] - self.sent_s[0]) / after_first if after_first else nan


@dataclass(frozen=True, slots=True)
class MockLog:
    """All requests so far; ``cpu_s`` is the processor time of the server since it began."""

    requests: tuple[RequestLog, ...]
    cpu_s: float

    def __iter__(self) -> Iterator[RequestLog]:
        return iter(self.requests)

    def __len__(self) -> int:
        return len(self.requests)

    def by_user(self) -> Mapping[str, RequestLog]:
        """The requests that carried a mark of their own; the last of those that shared one."""
        return {each.user: each for each in self.requests if each.user is not None}

    @property
    def tokens_sent(self) -> int:
        """Tokens that left."""
        return sum(sum(each.told) for each in self.requests)
