"""The next token of each row of a batch. Legend: R rows, V vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from servewise.engine.sampling.narrow import few_left, narrow_draw
from servewise.engine.sampling.penalties import History, penalised
from servewise.engine.sampling.probabilities import distribution, draw
from servewise.engine.sampling_settings import SamplingSettings

CANDIDATES = (64, 1024)  # most draws are among so few tokens


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
    best = logits_RV.max(-1)
    sound = torch.isfinite(best.values).tolist()
    if not all(sound):
        return _among_sound(logits_RV, rows, sound)
    if logits_RV.dtype not in (torch.float32, torch.float64):
        logits_RV = logits_RV.float()
    tokens = _tokens(logits_RV, rows, best.indices.tolist())
    return _with_logprobs(logits_RV, rows, tokens)


def _among_sound(logits_RV: Tensor, rows: Sequence[Row], sound: Sequence[bool]) -> list[Choice | None]:
    chosen: list[Choice | None] = [None] * len(rows)
    kept = [row for row, fine in enumerate(sound) if fine]
    for row, choice in zip(kept, sample(logits_RV[kept], [rows[row] for row in kept]), strict=True):
        chosen[row] = choice
    return chosen


def _tokens(logits_RV: Tensor, rows: Sequence[Row], best: list[int]) -> list[int]:
    """The tokens; ``best`` are the most likely ones, right already for a greedy row without penalties."""
    choosing = [row for row, each in enumerate(rows) if each.settings.penalised or not each.settings.greedy]
    if not choosing:
        return best
    chosen = [rows[row] for row in choosing]
    settings = [each.settings for each in chosen]
    some_RV = logits_RV if len(chosen) == len(rows) else logits_RV[choosing]
    some_RV = penalised(some_RV, settings, [each.history for each in chosen])
    uniforms = [0.0 if each.settings.greedy else each.rng.random() for each in chosen]
    for row, token in zip(choosing, _drawn(some_RV, settings, uniforms), strict=True):
        best[row] = token
    return best


def _drawn(logits_RV: Tensor, settings: Sequence[SamplingSettings], uniforms: Sequence[float]) -> list[int]:
    """Draw for each row among few candidates, then more, then all: how far a row goes depends on it alone."""
    tokens: list[int | None] = [None] * len(settings)
    for candidates in CANDIDATES:
        open_rows = [row for row, token in enumerate(tokens) if token is None and few_left(settings[row])]
        if not open_rows or candidates >= logits_RV.shape[-1]:
            break
        _fill(tokens, open_rows, logits_RV, settings, uniforms, partial(narrow_draw, candidates=candidates))
    open_rows = [row for row, token in enumerate(tokens) if token is None]
    if open_rows:
        _fill(tokens, open_rows, logits_RV, settings, uniforms, _wide_draw)
    return [token for token in tokens if token is not None]


def _fill(
    tokens: list[int | None],
    rows: Sequence[int],
    logits_RV: Tensor,
    settings: Sequence[SamplingSettings],
    uniforms: Sequence[float],
    drawn: Callable[[Tensor, list[SamplingSettings], list[float]], Sequence[int | None]],
) -> None:
    """Put what ``drawn`` finds for ``rows`` into ``tokens``."""
    chosen_RV = logits_RV if len(rows) == len(logits_RV) else logits_RV[rows]
    found = drawn(chosen_RV, [settings[row] for row in rows], [uniforms[row] for row in rows])
    for row, token in zip(rows, found, strict=True):
        tokens[row] = token


def _wide_draw(logits_RV: Tensor, settings: list[SamplingSettings], uniforms: list[float]) -> list[int]:
    return draw(distribution(logits_RV, settings), uniforms)


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
