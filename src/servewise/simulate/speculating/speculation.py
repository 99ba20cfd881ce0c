"""One way to speculate in a simulated server: who drafts, how much of it stands, how many tokens are drafted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from servewise.batching.batch import Batch
from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.draft_length import FixedLength, UntilBatch
from servewise.batching.speculative.policy import Groupable, LengthMaker, Speculative
from servewise.simulate.shapes import shape_of
from servewise.simulate.speculating.drafters import Drafter
from servewise.simulate.speculating.lengths import BestLength, MeasuredLength
from servewise.simulate.speculating.memory import NOTHING, Taken
from servewise.steptime.estimator import Estimator


@dataclass(frozen=True, slots=True)
class Speculation:
    """``drafter`` beside ``target``, the estimator of the model that verifies; ``length`` makes a run's draft length.

    ``policy`` wraps a policy, ``beside`` gives the seconds that a step takes beside the estimator's, ``taken`` what the
    draft takes of the memory; ``words`` name it in conditions.
    """

    target: Estimator
    drafter: Drafter
    acceptance: Acceptance
    length: LengthMaker
    taken: Taken = NOTHING
    words: str = "speculating"

    def policy(self, policy: Groupable, seed: int = 0) -> Speculative:
        """``policy`` with speculating sequences; ``seed`` decides what stands."""
        ahead = self.drafter.caches
        return Speculative(policy, self.acceptance, self.length, seed, looks_ahead=ahead, words=self.words)

    def timed_by(self, target: Estimator) -> Speculation:
        """The same with another clock of the target; the draft's, and a length chosen by the first, stay."""
        return replace(self, target=target)

    def beside(self, batch: Batch) -> float:
        """The drafter's time, and what the verification's own shape lacks to that of a plain step [s].

        See ``steptime.verification``: a verification takes no less than a plain step at its context.
        """
        drafting_s = self.drafter.seconds(batch)
        if not batch.drafted:
            return drafting_s
        window, seconds = self.target.window_tokens, self.target.seconds
        plain_s = seconds(shape_of(batch._replace(drafted=0), window))
        return drafting_s + max(0.0, plain_s - seconds(shape_of(batch, window)))


def fixed(k: int) -> LengthMaker:
    """Always K = ``k``."""
    return partial(FixedLength, k)


def until_batch(k: int, most: int) -> LengthMaker:
    """K = ``k`` up to ``most`` decoding sequences, none above."""
    return partial(UntilBatch, k, most)


def best(target: Estimator, drafter: Drafter, acceptance: Acceptance, max_k: int) -> LengthMaker:
    """The best K at the batch as it is, by the acceptance given."""
    return partial(BestLength, target, drafter, acceptance, max_k)


def measured(target: Estimator, drafter: Drafter, max_k: int) -> LengthMaker:
    """The best K at the batch as it is, by the acceptance that the run shows."""
    return partial(MeasuredLength, target, drafter, max_k)
