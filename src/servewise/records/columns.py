"""Request and step records as columns: small for a million rows, equal for simulated and measured runs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field


def _floats() -> array[float]:
    return array("d")


def _ints() -> array[int]:
    return array("q")


@dataclass(slots=True)
class TokenTimes:
    """When each output token came [s from the run's start]: row i has ``times[offsets[i] : offsets[i + 1]]``."""

    offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    times: array[float] = field(default_factory=_floats)

    def append(self, times: Iterable[float]) -> None:
        """Add the tokens of the next request."""
        self.times.extend(times)
        self.offsets.append(len(self.times))


@dataclass(slots=True)
class RequestColumns:
    """One row per request that ended, in order of ending. Times in seconds from the run's start; NaN: never came.

    ``scheduled_s`` is when the request should have been sent, ``sent_s`` when it was (equal in simulation).
    ``token_times`` are there in measured runs (in simulated ones the steps are known); ``errors`` by row.
    ``status``: 0 completed, 1 rejected (can never fit), 2 failed, 3 cancelled, 4 unfinished at the run's end.

    A simulator also tells where the time went, elsewhere these columns are empty: ``replica`` is the server that ended
    it; ``prefill_s`` the time in prefill, recomputation included; ``preempted_s`` from preemptions to the admissions
    after them; ``transfer_s`` between a prefill server and a decode server. ``metrics.phases`` has the whole account.
    """

    id: array[int] = field(default_factory=_ints)
    scheduled_s: array[float] = field(default_factory=_floats)
    sent_s: array[float] = field(default_factory=_floats)
    admitted_s: array[float] = field(default_factory=_floats)
    first_token_s: array[float] = field(default_factory=_floats)
    end_s: array[float] = field(default_factory=_floats)
    prompt_tokens: array[int] = field(default_factory=_ints)
    cached_tokens: array[int] = field(default_factory=_ints)
    output_tokens: array[int] = field(default_factory=_ints)
    preemptions: array[int] = field(default_factory=_ints)
    status: array[int] = field(default_factory=_ints)
    replica: array[int] = field(default_factory=_ints)
    prefill_s: array[float] = field(default_factory=_floats)
    preempted_s: array[float] = field(default_factory=_floats)
    transfer_s: array[float] = field(default_factory=_floats)
    token_times: TokenTimes | None = None
    errors: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Rows."""
        return len(self.id)


COMPLETED, REJECTED, FAILED, CANCELLED, UNFINISHED = range(5)
STATUS_NAMES = ("completed", "rejected", "failed", "cancelled", "unfinished")


@dataclass(slots=True)
class StepColumns:
    """One row per run of ``steps`` equal-batch steps (1 for a step with prompt chunks).

    ``seconds`` is their summed time, ``decode_sequences`` and ``prefill_tokens`` their shape, ``running`` the
    sequences that hold a slot (a static batch holds finished ones too), ``kv_tokens`` the context summed at start,
    ``active`` the sequences that got a token in each of the steps (a prompt's last chunk gives one too). A simulator
    also tells the ``replica``, the server that ran them, and the ``lane``: of a server with several batches in flight
    (pipeline stages) the one of them, whose steps follow each other while those of others overlap; an engine the parts
    of ``seconds``: ``plan_s`` (deciding and laying out the step), ``model_s`` (the network) and ``sample_s`` (choosing
    tokens). Elsewhere these are empty.
    """

    start_s: array[float] = field(default_factory=_floats)
    seconds: array[float] = field(default_factory=_floats)
    steps: array[int] = field(default_factory=_ints)
    decode_sequences: array[int] = field(default_factory=_ints)
    prefill_tokens: array[int] = field(default_factory=_ints)
    running: array[int] = field(default_factory=_ints)
    waiting: array[int] = field(default_factory=_ints)
    kv_tokens: array[int] = field(default_factory=_ints)
    active: array[int] = field(default_factory=_ints)
    replica: array[int] = field(default_factory=_ints)
    lane: array[int] = field(default_factory=_ints)
    plan_s: array[float] = field(default_factory=_floats)
    model_s: array[float] = field(default_factory=_floats)
    sample_s: array[float] = field(default_factory=_floats)

    def __len__(self) -> int:
        """Rows."""
        return len(self.seconds)
