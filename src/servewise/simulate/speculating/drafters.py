"""Who drafts, and what it costs beside the target's step: a model, an n-gram lookup, or heads on the target.

Each drafts K tokens for every decoding sequence before they are verified, and keeps up with the prompts. Which tokens
stand is not its business (``batching.speculative``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from servewise.batching.batch import Batch
from servewise.simulate.shapes import shape_of
from servewise.steptime.estimator import Estimator
from servewise.steptime.shape import StepShape


class Drafter(Protocol):
    """What drafts."""

    @property
    def name(self) -> str:
        """How results name it."""
        ...

    @property
    def caches(self) -> bool:
        """Whether it has a KV cache, for which blocks are reserved ahead."""
        ...

    def step_s(self, sequences: int, context_tokens: int) -> float:
        """One drafted token of each sequence; ``context_tokens`` are the KV tokens of all [s]."""
        ...

    def seconds(self, batch: Batch) -> float:
        """All that it does for the step that ``batch`` describes [s]."""
        ...


@dataclass(frozen=True, slots=True)
class DraftModel:
    """A model with a KV cache of its own: K passes, one after another.

    The first pass takes the prompt chunks of the step too, so that its cache keeps up (vLLM v1/spec_decode/eagle.py
    ``propose``, v0.11: one pass over all scheduled tokens, then K - 1 over one a sequence). EAGLE's one layer and a
    checkpoint's multi-token prediction layer are such models (``one_layer``). Left out: the first pass recomputes the
    tokens that the target accepted (a few rows more), sampling between the passes.
    """

    estimator: Estimator
    name: str = "draft model"

    caches = True

    def step_s(self, sequences: int, context_tokens: int) -> float:
        """A decode step of the draft [s]."""
        return self.estimator.seconds(plain(sequences, context_tokens, self.estimator.window_tokens))

    def seconds(self, batch: Batch) -> float:
        """K decode steps, the first with the step's prompt chunks; without drafts the chunks alone [s]."""
        passes = batch.drafted
        if not batch.chunks:
            return passes * self.step_s(batch.decodes, batch.context_tokens) if passes else 0.0
        rows = batch if passes else batch._replace(decodes=0, context_tokens=0, windowed_tokens=0)
        first_s = self.estimator.seconds(shape_of(rows._replace(drafted=0), self.estimator.window_tokens))
        return first_s + max(0, passes - 1) * self.step_s(batch.decodes, batch.context_tokens)


@dataclass(frozen=True, slots=True)
class Ngram:
    """A lookup of the last tokens in the sequence itself, on the host: no accelerator time.

    vLLM's took under 0.1 ms a sequence in v0.11 (v1/spec_decode/ngram_proposer.py, compiled by Numba); it is left out.
    """

    name: str = "n-gram"

    caches = False

    def step_s(self, sequences: int, context_tokens: int) -> float:  # noqa: ARG002 - the seam of all drafters
        """0 s."""
        return 0.0

    def seconds(self, batch: Batch) -> float:  # noqa: ARG002
        """0 s."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Heads:
    """Medusa's heads on the target's last hidden state: head i guesses token i, with no cache and no order.

    ``estimator`` is of one head (``one_layer.medusa_head``); K of them run for each sequence.
    """

    estimator: Estimator
    name: str = "heads"

    caches = False

    def step_s(self, sequences: int, context_tokens: int) -> float:  # noqa: ARG002
        """One head's products [s]."""
        return self.estimator.seconds(StepShape(decode_sequences=sequences, logit_rows=sequences))

    def seconds(self, batch: Batch) -> float:
        """K heads [s]."""
        return batch.drafted * self.step_s(batch.decodes, 0) if batch.drafted else 0.0


def plain(sequences: int, context_tokens: int, window_tokens: int | None) -> StepShape:
    """A decode step of ``sequences`` sequences with that many KV tokens in all."""
    windowed = context_tokens if window_tokens is None else min(context_tokens, sequences * window_tokens)
    return StepShape(sequences, context_tokens, windowed, logit_rows=sequences)
