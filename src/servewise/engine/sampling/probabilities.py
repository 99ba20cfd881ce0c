"""The distribution that a request draws from, and drawing from it. Legend: R rows, V vocabulary, B blocks
of N tokens.

The order of operations, vLLM's (v1/sample/sampler.py): penalties, temperature, min-p, top-k, top-p, softmax, draw.
A row's result is made from that row alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from servewise.engine.sampling.filters import filtered
from servewise.engine.sampling.penalties import History, penalised
from servewise.engine.sampling_settings import SamplingSettings

BLOCK = 256  # tokens summed at once in a draw


def probabilities(
    logits_RV: Tensor,
    settings: SamplingSettings | Sequence[SamplingSettings],
    histories: Sequence[History] | None = None,
) -> Tensor:
    """Each row's probabilities (R, V) under its settings (or one for all rows); a greedy row has a single 1.

    ``histories`` are needed where a row has penalties.
    """
    each = [settings] * len(logits_RV) if isinstance(settings, SamplingSettings) else settings
    return distribution(penalised(logits_RV, each, histories or ()), each)


def distribution(logits_RV: Tensor, settings: Sequence[SamplingSettings]) -> Tensor:
    """``probabilities`` from logits that have had their penalties."""
    out_RV = filtered(_over_temperature(logits_RV, settings), settings).softmax(-1)
    greedy = [row for row, each in enumerate(settings) if each.greedy]
    if greedy:
        out_RV[greedy] = 0.0
        out_RV[greedy, logits_RV[greedy].argmax(-1)] = 1.0
    return out_RV


def _over_temperature(logits_RV: Tensor, settings: Sequence[SamplingSettings]) -> Tensor:
    temperatures = [[1.0 if each.greedy else each.temperature] for each in settings]
    return logits_RV / torch.tensor(temperatures, dtype=logits_RV.dtype, device=logits_RV.device)


def draw(probabilities_RV: Tensor, uniforms: Sequence[float]) -> list[int]:
    """One token a row: the first whose cumulative probability passes the row's uniform number from [0, 1).

    The sums are float64; the uniform is scaled by the row's own sum, and a token of probability 0 is never drawn. The
    vocabulary is summed by blocks first, then token by token in one block, which is faster than a running sum of all.
    """
    rows, vocabulary = probabilities_RV.shape
    padded_RV = functional.pad(probabilities_RV, (0, -vocabulary % BLOCK)) if vocabulary % BLOCK else probabilities_RV
    blocks_RBN = padded_RV.view(rows, -1, BLOCK)
    sums_RB = blocks_RBN.sum(-1, dtype=torch.float64).cumsum(-1)
    at_R1 = torch.tensor(uniforms, dtype=torch.float64, device=sums_RB.device)[:, None] * sums_RB[:, -1:]
    block_R1 = first_past(sums_RB, at_R1)
    before_R1 = functional.pad(sums_RB, (1, 0)).gather(-1, block_R1)
    block_RN = blocks_RBN[torch.arange(rows, device=block_R1.device), block_R1[:, 0]]
    inside_R1 = first_past(block_RN.cumsum(-1, dtype=torch.float64), at_R1 - before_R1)
    tokens: list[int] = (block_R1 * BLOCK + inside_R1)[:, 0].tolist()
    return tokens


def first_past(sums_RN: Tensor, at_R1: Tensor) -> Tensor:
    """Where each row's running sums first pass ``at_R1``, (R, 1); what rounding puts at or past the end counts as
    just below it, so that nothing of weight 0 is found."""
    last_R1 = sums_RN[:, -1:].contiguous()
    below_R1 = torch.minimum(at_R1, torch.nextafter(last_R1, torch.zeros_like(last_R1)))
    return torch.searchsorted(sums_RN, below_R1.clamp(min=0.0), right=True)
