"""What drafting and verifying cost, timed where they will run: the other half of choosing K, beside acceptance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from servewise.engine.speculative.cached_model import CachedModel
from servewise.engine.speculative.decoder import Request, SpeculativeDecoder
from servewise.engine.speculative.lane import Draft, Lane, Proposal
from servewise.engine.speculative.verification import verify
from servewise.errors import RunFailed


class RoundTime(NamedTuple):
    """One timed round at draft length ``k``: seconds of draft and of verification, and waited for a core."""

    k: int
    draft_s: float
    verify_s: float
    waited_s: float


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """Seconds of a round of ``lanes`` sequences by K, from 0 (a plain step): the draft's part and the target's."""

    lanes: int
    draft_s: tuple[float, ...]
    verify_s: tuple[float, ...]

    @property
    def draft_cost(self) -> float:
        """c: a draft step over a plain step of the target [ratio], averaged over all drafted tokens that were timed."""
        return sum(self.draft_s) / sum(range(len(self.draft_s))) / self.verify_s[0]


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """The ``Costs`` of a measured draft length, from batches that were timed; linear between them, level outside."""

    batches: tuple[BatchCosts, ...]

    def draft_step_s(self, lanes: int) -> float:
        """One drafted token of each of ``lanes`` sequences."""
        return self._between(lanes, [each.draft_cost * each.verify_s[0] for each in self.batches])

    def verify_s(self, lanes: int, tokens: int) -> float:
        """The target's pass over ``tokens`` new tokens of each."""
        return self._between(lanes, [each.verify_s[tokens - 1] for each in self.batches])

    def _between(self, lanes: int, values: Sequence[float]) -> float:
        return float(np.interp(lanes, [each.lanes for each in self.batches], values))


class RoundTimer:
    """Times rounds of ``requests``, all in one batch, and takes each back, so that all start from the same contexts.

    Verified tokens are drawn at random: their times do not depend on which they are, nor on how many are kept.
    """

    def __init__(
        self,
        target: CachedModel,
        draft: Draft | None,
        requests: Sequence[Request],
        *,
        rng: np.random.Generator,
        clock: Callable[[], float] = perf_counter,
        waited: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._decoder = SpeculativeDecoder(target, draft, clock=clock)
        self._rng, self._clock, self._waited = rng, clock, waited
        for request in requests:
            if self._decoder.admit(request) is None:
                raise RunFailed(f"the KV cache is too small for a batch of {len(requests)}")

    @property
    def lanes(self) -> list[Lane]:
        """The batch."""
        return self._decoder.lanes

    def time(self, k: int, offered: Sequence[int]) -> RoundTime:
        """One round: ``k`` tokens are asked of the draft, ``offered[i]`` drafted ones of lane i are verified."""
        lanes, target = self.lanes, self._decoder.target
        made = [self._proposal(count) for count in offered]
        waited_s, start_s = self._waited(), self._clock()
        self._decoder.proposals(lanes, [k] * len(lanes))
        drafted_s = self._clock()
        verify(target, lanes, made)
        end_s, waited_s = self._clock(), self._waited() - waited_s
        for lane in lanes:
            target.keep(lane.serial, len(lane.tokens) - 1)
        return RoundTime(k, drafted_s - start_s, end_s - drafted_s, waited_s)

    def close(self) -> None:
        """Give the lanes' room back."""
        for lane in list(self.lanes):
            self._decoder.release(lane)

    def _proposal(self, count: int) -> Proposal:
        vocabulary = self._decoder.target.model.config.vocabulary
        return Proposal(tuple(self._rng.integers(vocabulary, size=count).tolist()))
