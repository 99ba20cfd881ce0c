"""One pass of the target over every lane's draft, and what the rule keeps. Legend: R rows of a lane, V vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from servewise.engine.sampling.probabilities import probabilities
from servewise.engine.speculative.cached_model import CachedModel, Chunk
from servewise.engine.speculative.lane import Lane, Proposal
from servewise.engine.speculative.rule import verified, verified_greedy

NOT_FINITE = "the model gave logits that are no finite numbers"


def verify(target: CachedModel, lanes: Sequence[Lane], proposals: Sequence[Proposal]) -> list[tuple[int, ...] | None]:
    """Tokens that each lane gains, 1 to K + 1; None for a lane whose logits are not finite.

    Lanes are left as they are; the cache holds the last token and the whole draft of each, to be cut back with
    ``CachedModel.keep``.
    """
    chunks = [
        Chunk(lane.serial, (lane.tokens[-1], *proposal.tokens), wanted=len(proposal.tokens) + 1)
        for lane, proposal in zip(lanes, proposals, strict=True)
    ]
    logits = target.extend(chunks)
    return [judged(each, lane, proposal) for each, lane, proposal in zip(logits, lanes, proposals, strict=True)]


def judged(logits_RV: Tensor, lane: Lane, proposal: Proposal) -> tuple[int, ...] | None:
    """The rule under the lane's own settings and random stream; None where the logits are not finite."""
    if not torch.isfinite(logits_RV.sum()) and not torch.isfinite(logits_RV).all():
        return None
    settings = lane.settings
    if settings.greedy and not settings.penalised:
        return verified_greedy(logits_RV.argmax(-1).tolist(), proposal.tokens)
    histories = lane.histories(proposal.tokens) if settings.penalised else None
    return verified(probabilities(logits_RV, settings, histories), proposal, lane.rng)
