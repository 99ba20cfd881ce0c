"""Repetition, frequency and presence penalties. Legend: R rows, V vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from servewise.engine.sampling_settings import SamplingSettings

MOST = 1e30  # a logit after its penalty: finite in float32 over any temperature, beside which no other counts


class History(NamedTuple):
    """The tokens before the one to choose; the first ``prompt_tokens`` of them are the prompt."""

    tokens: Sequence[int]
    prompt_tokens: int


def penalised(logits_RV: Tensor, settings: Sequence[SamplingSettings], histories: Sequence[History]) -> Tensor:
    """Logits after each row's penalties; the given tensor is left as it is.

    Repetition first, over prompt and output: a positive logit is divided by it, a negative one multiplied (Keskar et
    al. 2019, CTRL, as Hugging Face and vLLM read it). Then, over the output alone, minus frequency x count and minus
    presence where the count is above 0 (the OpenAI API's equation).
    """
    rows = [row for row, each in enumerate(settings) if each.penalised]
    if not rows:
        return logits_RV
    out = logits_RV.clone()
    for row in rows:
        _penalise(out[row], settings[row], histories[row])
    return out


def _penalise(logits_V: Tensor, settings: SamplingSettings, history: History) -> None:
    device = logits_V.device
    if settings.repetition_penalty != 1.0:
        seen = torch.tensor(sorted(set(history.tokens)), device=device)
        old = logits_V[seen]
        factor = settings.repetition_penalty
        new = torch.nan_to_num(torch.where(old > 0, old / factor, old * factor), nan=0.0)  # 0 x infinity
        logits_V[seen] = torch.where(old.isfinite(), new.clamp(-MOST, MOST), old)
    output = history.tokens[history.prompt_tokens :]
    if output and (settings.frequency_penalty or settings.presence_penalty):
        tokens, counts = torch.unique(torch.tensor(output, device=device), return_counts=True)
        logits_V[tokens] -= settings.frequency_penalty * counts + settings.presence_penalty
