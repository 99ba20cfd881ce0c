"""Which tokens stay in the draw: min-p, top-k, top-p. Legend: R rows, V vocabulary, C candidates.

Each gives a row's floor: the least logit (already over the temperature) that stays. Tokens that tie with the last one
kept are kept too, so that the result does not depend on how a sort orders ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log

import torch
from torch import Tensor

from servewise.engine.sampling_settings import SamplingSettings

CANDIDATES = 1024  # most nuclei lie among so many tokens, and finding those is far cheaper than sorting a vocabulary


def filtered(logits_RV: Tensor, settings: Sequence[SamplingSettings]) -> Tensor:
    """min-p, then top-k, then top-p over what is left (vLLM's order), in place, in the rows that ask for it."""
    vocabulary = logits_RV.shape[-1]
    for rows, floors in (
        ([row for row, each in enumerate(settings) if each.min_p > 0], min_p_floors),
        ([row for row, each in enumerate(settings) if 0 < each.top_k < vocabulary], top_k_floors),
        ([row for row, each in enumerate(settings) if each.top_p < 1], top_p_floors),
    ):
        if rows:
            chosen_RV = logits_RV[rows]
            floors_R1 = floors(chosen_RV, [settings[row] for row in rows])
            logits_RV[rows] = chosen_RV.masked_fill(chosen_RV < floors_R1, -inf)
    return logits_RV


def min_p_floors(logits_RV: Tensor, settings: Sequence[SamplingSettings]) -> Tensor:
    """Tokens of at least ``min_p`` times the greatest probability stay (Nguyen et al. 2024, min-p)."""
    logs = torch.tensor([[log(each.min_p)] for each in settings], dtype=logits_RV.dtype, device=logits_RV.device)
    return logits_RV.amax(-1, keepdim=True) + logs


def top_k_floors(logits_RV: Tensor, settings: Sequence[SamplingSettings]) -> Tensor:
    """The ``top_k`` most likely tokens stay (Fan et al. 2018)."""
    ks = torch.tensor([[each.top_k - 1] for each in settings], device=logits_RV.device)
    best_RC = logits_RV.topk(max(each.top_k for each in settings)).values
    return best_RC.gather(-1, ks)


def top_p_floors(logits_RV: Tensor, settings: Sequence[SamplingSettings]) -> Tensor:
    """The fewest most likely tokens that make up ``top_p`` of the probability stay (Holtzman et al. 2020, nucleus).

    A token stays while those before it make up less than ``top_p``; at least one does.
    """
    shares = torch.tensor([[each.top_p] for each in settings], dtype=torch.float64, device=logits_RV.device)
    totals_R1 = logits_RV.logsumexp(-1, keepdim=True)
    best_RC = logits_RV.topk(min(CANDIDATES, logits_RV.shape[-1])).values
    floors, enough = _nucleus(best_RC, totals_R1, shares)
    wide = (~enough).nonzero().flatten()
    if len(wide):
        sorted_RV = logits_RV[wide].sort(-1, descending=True).values
        floors[wide] = _nucleus(sorted_RV, totals_R1[wide], shares[wide])[0]
    return floors


def _nucleus(best_RC: Tensor, totals_R1: Tensor, shares_R1: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's floor among its best logits, and whether those reach its share."""
    probabilities_RC = (best_RC - totals_R1).exp().to(torch.float64)
    sums_RC = probabilities_RC.cumsum(-1)
    kept_R1 = (sums_RC - probabilities_RC < shares_R1).sum(-1, keepdim=True).clamp(min=1)
    return best_RC.gather(-1, kept_R1 - 1), sums_RC[:, -1] >= shares_R1[:, 0]
