"""The terms on which a schedule is sent."""

from __future__ import annotations

from dataclasses import dataclass

DRAIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """When a run ends, and what is kept of its answers.

    From ``until_s`` [s from the run's start] on nothing new is sent (None: until the schedule is finished); what is
    under way then may go on for ``drain_s`` [s] and is cancelled after that. ``keep_text`` and ``keep_logprobs``: of
    each answer its text, and its tokens' log-probabilities.
    """

    until_s: float | None = None
    drain_s: float = DRAIN_S
    keep_text: bool = False
    keep_logprobs: bool = False


USUAL = Terms()
