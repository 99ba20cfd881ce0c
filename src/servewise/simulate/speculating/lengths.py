"""Draft lengths chosen by the estimator: the K of the largest speed-up at the batch as it is."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.batching.speculative.acceptance import Acceptance
from servewise.simulate.speculating.drafters import Drafter
from servewise.steptime.estimator import Estimator
from servewise.steptime.verification import verification_seconds
from servewise.techniques.speculation import SpeculationRow, batched_speedup, best_row, tokens_by_position

BUCKET_TOKENS = 256  # mean contexts this near share a choice
PRIOR_ACCEPTANCE, PRIOR_WEIGHT = 0.7, 4.0  # what a position is taken to have before it was seen often
MEMORY = 0.99  # what is left of a count's weight after each step: about the last hundred count
LOOK_AGAIN_STEPS = 64  # after so many steps without a draft one is tried: acceptance may have changed


def length_rows(
    target: Estimator, drafter: Drafter, chances: Sequence[float], sequences: int, context_tokens: int
) -> list[SpeculationRow]:
    """Every K from 0 to ``len(chances)`` with its tokens a verification and its speed-up of the batch as it is.

    ``chances``: the conditional acceptance of each position. See ``techniques.speculation.batched_speedup``.
    """
    step_s = verification_seconds(target, sequences, 1, context_tokens)
    rows = []
    for k in range(len(chances) + 1):
        verify_s = verification_seconds(target, sequences, k + 1, context_tokens + sequences * k)
        tokens = tokens_by_position(chances[:k])
        draft_step_s = drafter.round_s(k, sequences, context_tokens) / max(k, 1)
        gain = batched_speedup(tokens, k, step_s=step_s, draft_step_s=draft_step_s, verify_s=verify_s)
        rows.append(SpeculationRow(k, tokens, gain))
    return rows


class BestLength:
    """The best K up to ``max_k`` for the batch, by a known acceptance; 0 where no draft pays.

    vLLM's dynamic speculative decoding and EAGLE-4's harness choose from such a table, measured at start-up.
    """

    def __init__(self, target: Estimator, drafter: Drafter, acceptance: Acceptance, max_k: int) -> None:
        self._target, self._drafter = target, drafter
        self._chances = acceptance.chances(max_k)
        self._known: dict[tuple[int, int], int] = {}

    def choose(self, sequences: int, context_tokens: int) -> int:
        """The best K for so many sequences at their mean context, to the nearest ``BUCKET_TOKENS``."""
        bucket = context_tokens // (sequences * BUCKET_TOKENS)
        found = self._known.get((sequences, bucket))
        if found is None:
            middle = sequences * (bucket * BUCKET_TOKENS + BUCKET_TOKENS // 2)
            rows = length_rows(self._target, self._drafter, self._chances, sequences, middle)
            found = self._known[sequences, bucket] = best_row(rows).k
        return found

    def observe(self, drafted: int, by_count: Sequence[int]) -> None:
        """Its acceptance is known: nothing changes."""


class MeasuredLength:
    """The best K up to ``max_k`` by the acceptance of about the last hundred steps, as the run shows it.

    A position seen rarely is taken to be like the one before it; where no draft pays one is tried now and then. The
    engine's own (``engine.speculative.draft_length``) decides so too.
    """

    def __init__(self, target: Estimator, drafter: Drafter, max_k: int) -> None:
        self._target, self._drafter = target, drafter
        self._reached, self._accepted = [0.0] * max_k, [0.0] * max_k
        self._without = 0

    def choose(self, sequences: int, context_tokens: int) -> int:
        """The best K for the batch as it is."""
        if self._without > LOOK_AGAIN_STEPS:
            return 1
        return best_row(length_rows(self._target, self._drafter, self._smoothed(), sequences, context_tokens)).k

    def observe(self, drafted: int, by_count: Sequence[int]) -> None:
        """Add what the step kept; older steps weigh less."""
        self._without = 0 if drafted else self._without + 1
        if not drafted:
            return
        self._reached = [MEMORY * each for each in self._reached]
        self._accepted = [MEMORY * each for each in self._accepted]
        reached = float(sum(by_count))
        for place in range(drafted):
            kept = reached - by_count[place]
            self._reached[place] += reached
            self._accepted[place] += kept
            reached = kept

    def _smoothed(self) -> list[float]:
        chances, before = [], PRIOR_ACCEPTANCE
        for reached, accepted in zip(self._reached, self._accepted, strict=True):
            before = (accepted + PRIOR_WEIGHT * before) / (reached + PRIOR_WEIGHT)
            chances.append(min(1.0, before))
        return chances
