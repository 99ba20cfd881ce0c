"""The accept/reject rule: what is kept of a draft, so that the target's distribution is what comes out.

A drafted token x ~ q is kept with probability min(1, p(x) / q(x)); the first that is not gives way to one drawn from
the residual, max(0, p - q) over its sum; where all are kept, one more comes from the target's next distribution.
Sources: Leviathan, Kalman, Matias 2023 (arXiv:2211.17192), algorithm 1 and appendix A.1; Chen et al. 2023
(arXiv:2302.01318), algorithm 2 and theorem 1.

Legend: K drafted tokens, R = K + 1 rows, V vocabulary; p target, q draft.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from servewise.engine.sampling.probabilities import draw
from servewise.engine.speculative.lane import Proposal


def verified(target_RV: Tensor, proposal: Proposal, rng: np.random.Generator) -> tuple[int, ...]:
    """Tokens that a verification yields, 1 to K + 1: the kept ones, then one of the target's own.

    Row i of ``target_RV`` is the target's distribution after i drafted tokens. Draws K + 1 random numbers whatever is
    kept.
    """
    uniforms = rng.random(len(proposal.tokens) + 1)
    kept = _kept(target_RV, proposal, uniforms[:-1])
    last_V = target_RV[kept]
    if kept < len(proposal.tokens):
        q_V = None if proposal.probabilities_KV is None else proposal.probabilities_KV[kept]
        last_V = residual(last_V, q_V, proposal.tokens[kept])
    return (*proposal.tokens[:kept], draw(last_V[None], [float(uniforms[-1])])[0])


def verified_greedy(best_R: Sequence[int], drafted: Sequence[int]) -> tuple[int, ...]:
    """The same where the target is certain: row i's most likely token is ``best_R[i]``.

    >>> verified_greedy([5, 6, 7], [5, 8])
    (5, 6)
    """
    kept = next((place for place, token in enumerate(drafted) if token != best_R[place]), len(drafted))
    return (*drafted[:kept], best_R[kept])


def residual(p_V: Tensor, q_V: Tensor | None, token: int) -> Tensor:
    """What the target has beyond the draft, normalised, in float64; p itself where that is nothing (p = q).

    ``q_V`` None: the draft was certain of ``token``.
    """
    beyond_V = p_V.to(torch.float64, copy=True)
    if q_V is None:
        beyond_V[token] = 0.0
    else:
        beyond_V = (beyond_V - q_V).clamp_(min=0.0)
    total = beyond_V.sum()
    return beyond_V / total if total > 0 else p_V.to(torch.float64)


def _kept(target_RV: Tensor, proposal: Proposal, uniforms_K: np.ndarray) -> int:
    """How many drafted tokens are kept: those before the first x for which u q(x) < p(x) does not hold."""
    if not proposal.tokens:
        return 0
    rows, drafted_K = range(len(proposal.tokens)), list(proposal.tokens)
    p_K = target_RV[rows, drafted_K].tolist()
    q_KV = proposal.probabilities_KV
    q_K = [1.0] * len(rows) if q_KV is None else q_KV[rows, drafted_K].tolist()
    refused = (place for place in rows if not uniforms_K[place] * q_K[place] < p_K[place])
    return next(refused, len(rows))
