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

    def round_s(self, k: int, sequences: int, context_tokens: int) -> float:
        """``k`` tokens of each sequence [s]; ``context_tokens`` are the KV tokens of all. 0 s where ``k`` is 0."""
        ...

    def seconds(self, batch: Batch) -> float:
        """All that it does for the step that ``batch`` describes [s]."""
        ...


@dataclass(frozen=True, slots=True)
class HostTime:
    """What an engine's own code takes to speculate, which no kernel hides [s].

    ``pass_s`` for each pass of the draft (inputs prepared, kernels launched one by one), ``sequence_s`` for each
    sequence that verifies (drafts scheduled, tokens rejected, on the host). 0 is an engine that overlaps both.
    ``benchmarks.accuracy.speculation_in_the_loop`` fits them to published speed-ups.
    """

    pass_s: float = 0.0
    sequence_s: float = 0.0

    def seconds(self, passes: int, sequences: int) -> float:
        """``passes`` passes and so many sequences [s]."""
        return passes * self.pass_s + sequences * self.sequence_s


HIDDEN = HostTime()


@dataclass(frozen=True, slots=True)
class DraftModel:
    """A model with a KV cache of its own: K passes, one after another.

    The first pass takes the prompt chunks of the step too, so that its cache keeps up (vLLM v1/spec_decode/eagle.py
    ``propose``, v0.11: one pass over all scheduled tokens, then K - 1 over one a sequence). EAGLE's one layer and a
    checkpoint's multi-token prediction layer are such models (``one_layer``). Left out: the first pass recomputes the
    tokens that the target accepted (a few rows more), sampling between the passes, and that a draft which paused while
    the load was high has to catch up.
    """

    estimator: Estimator
    name: str = "draft model"
    host: HostTime = HIDDEN

    caches = True

    def round_s(self, k: int, sequences: int, context_tokens: int) -> float:
        """K decode steps of the draft [s]."""
        return k * self._step_s(sequences, context_tokens) + self.host.seconds(k, sequences) if k else 0.0

    def seconds(self, batch: Batch) -> float:
        """K decode steps, the first with the step's prompt chunks; without drafts the chunks alone [s]."""
        passes = batch.drafted
        if not batch.chunks:
            return self.round_s(passes, batch.decodes, batch.context_tokens)
        rows = batch if passes else batch._replace(decodes=0, context_tokens=0, windowed_tokens=0)
        first_s = self.estimator.seconds(shape_of(rows._replace(drafted=0), self.estimator.window_tokens))
        if not passes:
            return first_s
        more_s = (passes - 1) * self._step_s(batch.decodes, batch.context_tokens)
        return first_s + more_s + self.host.seconds(passes, batch.decodes)

    def _step_s(self, sequences: int, context_tokens: int) -> float:
        window = self.estimator.window_tokens
        windowed = context_tokens if window is None else min(context_tokens, sequences * window)
        return self.estimator.seconds(StepShape(sequences, context_tokens, windowed, logit_rows=sequences))


@dataclass(frozen=True, slots=True)
class Ngram:
    """A lookup of the last tokens in the sequence itself, on the host: no accelerator time."""

    name: str = "n-gram"
    host: HostTime = HIDDEN

    caches = False

    def round_s(self, k: int, sequences: int, context_tokens: int) -> float:  # noqa: ARG002 - the seam of all drafters
        """The host's time alone [s]."""
        return self.host.seconds(1, sequences) if k else 0.0

    def seconds(self, batch: Batch) -> float:
        """The same [s]; prompts need no drafter."""
        return self.round_s(batch.drafted, batch.decodes, batch.context_tokens)


@dataclass(frozen=True, slots=True)
class Heads:
    """Medusa's heads on the target's last hidden state: head i guesses token i, with no cache and no order.

    ``estimator`` is of one head (``one_layer.medusa_head``); K of them run for each sequence.
    """

    estimator: Estimator
    name: str = "heads"
    host: HostTime = HIDDEN

    caches = False

    def round_s(self, k: int, sequences: int, context_tokens: int) -> float:  # noqa: ARG002
        """K heads' products [s]."""
        if not k:
            return 0.0
        one_s = self.estimator.seconds(StepShape(decode_sequences=sequences, logit_rows=sequences))
        return k * one_s + self.host.seconds(1, sequences)

    def seconds(self, batch: Batch) -> float:
        """The same [s]; prompts need no heads."""
        return self.round_s(batch.drafted, batch.decodes, batch.context_tokens)
