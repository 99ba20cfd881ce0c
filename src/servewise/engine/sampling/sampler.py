"""The next token of each row of a batch. Legend: R rows, V vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from servewise.engine.sampling.penalties import History, penalised
from servewise.engine.sampling.probabilities import draw, probabilities
from servewise.engine.sampling_settings import SamplingSettings


class Row(NamedTuple):
    """What a row's choice depends on beside its logits: settings, the tokens before, its own random stream."""

    settings: SamplingSettings
    history: History
    rng: np.random.Generator


class Choice(NamedTuple):
    """A chosen token. ``logprob`` and the ``alternatives``, most likely first, are there where they were asked for.

    Log probabilities are the model's own, before penalties and temperature (vLLM's ``raw_logprobs``).
    """

    token: int
    logprob: float | None = None
    alternatives: tuple[tuple[int, float], ...] = ()


def random_stream(seed: int) -> np.random.Generator:
    """A request's own random numbers: one for each token it draws."""
    return np.random.Generator(np.random.PCG64(seed & 0xFFFF_FFFF_FFFF_FFFF))


def sample(logits_RV: Tensor, rows: Sequence[Row]) -> list[Choice | None]:
    """The token of each row; None for a row whose logits hold NaN or +inf, or nothing finite. No row sees another."""
    if not rows:
        return []
    sound = torch.isfinite(logits_RV.amax(-1)).tolist()
    if not all(sound):
        return _among_sound(logits_RV, rows, sound)
    if logits_RV.dtype not in (torch.float32, torch.float64):
        logits_RV = logits_RV.float()
    tokens = _tokens(logits_RV, rows)
    return _with_logprobs(logits_RV, rows, tokens)


def _among_sound(logits_RV: Tensor, rows: Sequence[Row], sound: Sequence[bool]) -> list[Choice | None]:
    chosen: list[Choice | None] = [None] * len(rows)
    kept = [row for row, fine in enumerate(sound) if fine]
    for row, choice in zip(kept, sample(logits_RV[kept], [rows[row] for row in kept]), strict=True):
        chosen[row] = choice
    return chosen


def _tokens(logits_RV: Tensor, rows: Sequence[Row]) -> list[int]:
    random = [row for row, each in enumerate(rows) if not each.settings.greedy]
    if len(random) == len(rows):
        return _random_tokens(logits_RV, rows)
    settings = [each.settings for each in rows]
    tokens: list[int] = penalised(logits_RV, settings, [each.history for each in rows]).argmax(-1).tolist()
    if random:
        drawn = _random_tokens(logits_RV[random], [rows[row] for row in random])
        for row, token in zip(random, drawn, strict=True):
            tokens[row] = token
    return tokens


def _random_tokens(logits_RV: Tensor, rows: Sequence[Row]) -> list[int]:
    settings, histories = [each.settings for each in rows], [each.history for each in rows]
    return draw(probabilities(logits_RV, settings, histories), [each.rng.random() for each in rows])


def _with_logprobs(logits_RV: Tensor, rows: Sequence[Row], tokens: Sequence[int]) -> list[Choice | None]:
    choices: list[Choice | None] = [Choice(token) for token in tokens]
    asked = [row for row, each in enumerate(rows) if each.settings.logprobs is not None]
    if not asked:
        return choices
    logprobs_RV = logits_RV[asked].log_softmax(-1)
    most = min(max(rows[row].settings.logprobs or 0 for row in asked), logits_RV.shape[-1])
    best = logprobs_RV.topk(most)
    values, ids = best.values.tolist(), best.indices.tolist()
    chosen = logprobs_RV[range(len(asked)), [tokens[row] for row in asked]].tolist()
    for at, row in enumerate(asked):
        count = rows[row].settings.logprobs or 0
        alternatives = tuple(zip(ids[at][:count], values[at][:count], strict=True))
        choices[row] = Choice(tokens[row], chosen[at], alternatives)
    return choices
