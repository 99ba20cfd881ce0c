"""A draw among the few tokens that top-k, top-p or min-p leave, without sorting or summing the whole vocabulary.

The same distribution, and but for rounding the same token for the same uniform number, as ``probabilities`` and
``draw`` give, at a fifth of the cost; a row that cannot be settled among its candidates says so. Legend: R rows,
V vocabulary, C candidates (each row's greatest logits, in falling order).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log

import torch
from torch import Tensor

from servewise.engine.sampling.probabilities import first_past
from servewise.engine.sampling_settings import SamplingSettings


def few_left(settings: SamplingSettings) -> bool:
    """Whether few tokens may be left in the draw; a greedy row's is the best one, which needs no draw."""
    return not settings.greedy and (settings.top_k > 0 or settings.top_p < 1 or settings.min_p > 0)


def narrow_draw(
    logits_RV: Tensor, settings: Sequence[SamplingSettings], uniforms: Sequence[float], candidates: int
) -> list[int | None]:
    """Each row's token among its ``candidates`` greatest logits; None: tokens beyond them may be in the draw too.

    ``logits_RV`` are after penalties, before the temperature.
    """
    best = logits_RV.topk(candidates)
    column = _Columns(settings, logits_RV.device)
    values_RC = best.values.double() / column.temperature
    last_R1 = values_RC[:, -1:]
    floor_R1 = torch.maximum(values_RC[:, :1] + column.min_p, _kth(values_RC, column.top_k))
    bounded_R1 = floor_R1 > last_R1  # all that min-p and top-k leave is among the candidates
    alive_RC = values_RC.masked_fill(values_RC < floor_R1, -inf)
    totals_R1 = alive_RC.logsumexp(-1, keepdim=True)
    if not bounded_R1.all():
        whole_R1 = (logits_RV / column.temperature.to(logits_RV.dtype)).logsumexp(-1, keepdim=True)
        totals_R1 = torch.where(bounded_R1, totals_R1, whole_R1.double())
    shares_RC = (alive_RC - totals_R1).exp()
    before_RC = shares_RC.cumsum(-1) - shares_RC
    kept_R1 = (before_RC < column.top_p).sum(-1, keepdim=True).clamp(min=1)
    nucleus_R1 = torch.where(column.top_p < 1, values_RC.gather(-1, kept_R1 - 1), -inf)
    free_R1 = floor_R1 == -inf  # neither min-p nor top-k: the whole row is what top-p takes its share of
    settled_R1 = bounded_R1 | (free_R1 & (nucleus_R1 > last_R1))
    weights_RC = shares_RC.masked_fill(values_RC < nucleus_R1, 0.0)
    tokens = _by_token(best.indices, weights_RC, uniforms)
    return [token if sure else None for token, sure in zip(tokens, settled_R1[:, 0].tolist(), strict=True)]


class _Columns:
    """The settings of the rows as columns (R, 1), those that are off without effect."""

    def __init__(self, settings: Sequence[SamplingSettings], device: torch.device) -> None:
        def column(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=device)[:, None]

        self.temperature = column([each.temperature for each in settings])
        self.min_p = column([log(each.min_p) if each.min_p > 0 else -inf for each in settings])
        self.top_p = column([each.top_p for each in settings])
        self.top_k = torch.tensor([[each.top_k] for each in settings], device=device)


def _kth(values_RC: Tensor, top_k_R1: Tensor) -> Tensor:
    """The top-k-th value; the last candidate's where k goes beyond (then nothing is bounded by it); -inf without k."""
    at_R1 = top_k_R1.clamp(1, values_RC.shape[-1]) - 1
    return torch.where(top_k_R1 > 0, values_RC.gather(-1, at_R1), -inf)


def _by_token(ids_RC: Tensor, weights_RC: Tensor, uniforms: Sequence[float]) -> list[int]:
    """The token at which the running sum of weights, in order of token ids, passes the uniform's share of it."""
    ids_RC, order_RC = ids_RC.sort(-1)
    sums_RC = weights_RC.gather(-1, order_RC).cumsum(-1)
    at_R1 = torch.tensor(uniforms, dtype=torch.float64, device=sums_RC.device)[:, None] * sums_RC[:, -1:]
    tokens: list[int] = ids_RC.gather(-1, first_past(sums_RC, at_R1))[:, 0].tolist()
    return tokens
