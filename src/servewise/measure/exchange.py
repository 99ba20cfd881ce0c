"""One request and its answer, as they went over the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Literal

from servewise.measure.ask import Ask
from servewise.measure.outcome import Outcome

Stamped = Literal["kernel", "user"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that brought output: when its last byte came [s from the run's start], and how many tokens it held.

    ``tokens`` is None where the event does not say: then all of the request's tokens are shared out over its events
    (``Exchange.output_tokens`` is the server's own count). ``reasoning``: it was thinking, not answer; both are output.
    """

    time_s: float
    tokens: int | None = None
    reasoning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What was sent, what came, and when; times in seconds from the run's start, NaN where it never happened.

    ``scheduled_s``: when it was due. ``sent_s``: when the last byte of the request left (the kernel's own stamp, else
    as the system call returned). ``head_s``: the answer's head. ``end_s``: the last byte of the answer. ``arrivals``
    hold output alone (no role-only, empty, usage or comment events). Token counts are the server's usage where it gave
    one (``counted_by`` says so), else the tokenizer's, else the events'. ``stamped``: whether arrival times are the
    kernel's or the program's own. ``reason`` is one line for people, empty for a completed one. ``text`` is kept where
    wanted, and ``logprobs``: for each output token what the server returned.
    """

    ask: Ask
    outcome: Outcome
    scheduled_s: float
    reason: str = ""
    sent_s: float = nan
    head_s: float = nan
    end_s: float = nan
    arrivals: tuple[Arrival, ...] = ()
    http_status: int | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    counted_by: Literal["usage", "tokenizer", "events"] = "events"
    retry_after_s: float | None = None
    retries: int = 0
    fresh_connection: bool = True
    stamped: Stamped = "user"
    events: int = 0
    text: str | None = None
    logprobs: tuple[object, ...] = field(default=(), repr=False)

    @property
    def first_token_s(self) -> float:
        """When the first output came."""
        return self.arrivals[0].time_s if self.arrivals else nan
