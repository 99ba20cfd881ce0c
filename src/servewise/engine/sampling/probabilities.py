"""The distribution that a request draws from, and drawing from it. Legend: R rows, V vocabulary.

The order of operations, vLLM's (v1/sample/sampler.py): penalties, temperature, min-p, top-k, top-p, softmax, draw.
A row's result is made from that row alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from servewise.engine.sampling.filters import filtered
from servewise.engine.sampling.penalties import History, penalised
from servewise.engine.sampling_settings import SamplingSettings


def probabilities(
    logits_RV: Tensor,
    settings: SamplingSettings | Sequence[SamplingSettings],
    histories: Sequence[History] | None = None,
) -> Tensor:
    """Each row's probabilities (R, V) under its settings (or one for all rows); a greedy row has a single 1.

    ``histories`` are needed where a row has penalties.
    """
    each = [settings] * len(logits_RV) if isinstance(settings, SamplingSettings) else settings
    logits_RV = penalised(logits_RV, each, histories or ())
    out_RV = filtered(_over_temperature(logits_RV, each), each).softmax(-1)
    greedy = [row for row, one in enumerate(each) if one.greedy]
    if greedy:
        out_RV[greedy] = 0.0
        out_RV[greedy, logits_RV[greedy].argmax(-1)] = 1.0
    return out_RV


def _over_temperature(logits_RV: Tensor, settings: Sequence[SamplingSettings]) -> Tensor:
    temperatures = [[1.0 if each.greedy else each.temperature] for each in settings]
    return logits_RV / torch.tensor(temperatures, dtype=logits_RV.dtype, device=logits_RV.device)


def draw(probabilities_RV: Tensor, uniforms: Sequence[float]) -> list[int]:
    """One token a row: the first whose cumulative probability passes the row's uniform number from [0, 1).

    The sums are float64; the uniform is scaled by the row's own sum, and a token of probability 0 is never drawn.
    """
    sums_RV = probabilities_RV.cumsum(-1, dtype=torch.float64)
    totals_R1 = sums_RV[:, -1:].contiguous()
    at_R1 = totals_R1 * torch.tensor(uniforms, dtype=torch.float64, device=totals_R1.device)[:, None]
    below_R1 = torch.minimum(at_R1, torch.nextafter(totals_R1, torch.zeros_like(totals_R1)))
    tokens: list[int] = torch.searchsorted(sums_RV, below_R1, right=True)[:, 0].tolist()
    return tokens
