"""A second, cheaper model as the draft: a small one, the target with fewer bits, or its first layers alone.

Legend: K drafted tokens, N rows of a chunk, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from servewise.engine.sampling.penalties import History
from servewise.engine.sampling.probabilities import draw, probabilities
from servewise.engine.speculative.cached_model import CachedModel, Chunk
from servewise.engine.speculative.lane import Lane, Proposal

DRAFT_STREAM = 1  # beside the lane's own: what is drafted must not depend on how it is judged


class ModelDraft:
    """Draws each token from the draft's own distribution, under the lane's own settings (greedy lanes: its best)."""

    def __init__(self, name: str, cached: CachedModel) -> None:
        self._name = name
        self._cached = cached
        self._rngs: dict[int, np.random.Generator] = {}
        self._broken: set[int] = set()

    @property
    def name(self) -> str:
        """As it was asked for."""
        return self._name

    def admit(self, lanes: Sequence[Lane]) -> bool:
        """Reserve room and compute all but each last token; on a full cache none of ``lanes`` stays."""
        taken = 0
        while taken < len(lanes) and self._cached.admit(lanes[taken].serial, lanes[taken].most_tokens):
            taken += 1
        if taken < len(lanes):
            for lane in lanes[:taken]:
                self._cached.release(lane.serial)
            return False
        for lane in lanes:
            self._rngs[lane.serial] = np.random.default_rng([lane.seed, DRAFT_STREAM])
            if len(lane.tokens) > 1:
                self._cached.prefill(lane.serial, lane.tokens[:-1], wanted=0)
        return True

    def propose(self, lanes: Sequence[Lane], lengths: Sequence[int]) -> list[Proposal]:
        """``lengths[i]`` tokens for lane i, drawn one after another, all lanes together."""
        drafts = [_Drafting(lane, length) for lane, length in zip(lanes, lengths, strict=True)]
        for lane in lanes:  # drafted tokens that were refused, and the one in their place, are not in the cache
            self._cached.keep(lane.serial, len(lane.tokens) - 1)
        while running := [each for each in drafts if len(each.tokens) < each.length]:
            chunks = [self._next_chunk(each) for each in running]
            for each, logits_NV in zip(running, self._cached.extend(chunks), strict=True):
                each.take(logits_NV, self._rngs[each.lane.serial])
        self._broken |= {each.lane.serial for each in drafts if each.broken}
        return [each.proposal() for each in drafts]

    def release(self, lane: Lane) -> None:
        """Give back its room, without the not-a-numbers of a draft that broke."""
        if lane.serial in self._broken:
            self._cached.clear(lane.serial)
            self._broken.remove(lane.serial)
        self._cached.release(lane.serial)
        del self._rngs[lane.serial]

    def _next_chunk(self, drafting: _Drafting) -> Chunk:
        lane = drafting.lane
        missing = [*lane.tokens, *drafting.tokens][self._cached.computed(lane.serial) :]
        return Chunk(lane.serial, missing, wanted=1)


class _Drafting:
    """One lane's draft as it grows."""

    def __init__(self, lane: Lane, length: int) -> None:
        self.lane, self.length = lane, length
        self.tokens: list[int] = []
        self.broken = False
        self._rows: list[Tensor] = []
        self._certain = lane.settings.greedy and not lane.settings.penalised

    def take(self, logits_NV: Tensor, rng: np.random.Generator) -> None:
        """Choose the next token; logits that are not finite end the draft, which the target then goes on without."""
        if not torch.isfinite(logits_NV).all():
            self.length, self.broken = len(self.tokens), True
            return
        if self._certain:
            self.tokens.append(int(logits_NV[-1].argmax()))
            return
        history = History([*self.lane.tokens, *self.tokens], self.lane.prompt_tokens)
        q_1V = probabilities(logits_NV[-1:], self.lane.settings, [history])
        self.tokens += draw(q_1V, [rng.random()])
        self._rows.append(q_1V)

    def proposal(self) -> Proposal:
        """The draft."""
        return Proposal(tuple(self.tokens), torch.cat(self._rows) if self._rows else None)
