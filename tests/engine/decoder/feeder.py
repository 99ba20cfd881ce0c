"""Feeds token lists to a model as steps, with blocks in a random order; and the oracle to hold it against."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MethodType
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from servewise.engine.config import RopeConfig
from servewise.engine.decoder.rope import frequencies
from servewise.engine.step import KvCache, Model, StepInput


class Feeder:
    """Sequences by name over one model and cache; ``feed`` appends tokens and returns the logits of all of them."""

    def __init__(self, model: Model, blocks: int = 64, block_tokens: int = 4, seed: int = 0) -> None:
        self.model = model
        self.cache: KvCache = model.new_cache(blocks, block_tokens)
        self.free = random.Random(seed).sample(range(blocks), blocks)
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}

    def feed(self, new: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
        """One step; the logits of every new token, by sequence."""
        step = self.step_of(new)
        logits = self.model.step(step, self.cache)
        return {name: logits[a:b] for name, a, b in zip(new, step.query_starts, step.query_starts[1:], strict=False)}

    def step_of(self, new: Mapping[str, Sequence[int]]) -> StepInput:
        """The step, its blocks taken."""
        size = self.cache.block_tokens
        positions: list[int] = []
        slots: list[int] = []
        starts = [0]
        for name, tokens in new.items():
            start = self.lengths.get(name, 0)
            end = self.lengths[name] = start + len(tokens)
            table = self.tables.setdefault(name, [])
            while len(table) * size < end:
                table.append(self.free.pop())
            positions += range(start, end)
            slots += [table[i // size] * size + i % size for i in range(start, end)]
            starts.append(starts[-1] + len(tokens))
        return StepInput(
            tokens_T=torch.tensor([each for tokens in new.values() for each in tokens]),
            positions_T=torch.tensor(positions),
            slots_T=torch.tensor(slots),
            query_starts=tuple(starts),
            context_tokens=tuple(self.lengths[name] for name in new),
            block_tables=tuple(tuple(self.tables[name]) for name in new),
            rows_R=torch.arange(starts[-1]),
        )


def oracle(folder: Path, dtype: torch.dtype, rope: RopeConfig | None = None) -> Any:
    """transformers' own model of the checkpoint; in float64 its float32 islands (norms, angles) widened.

    transformers takes norms and rotary angles through float32 whatever the dtype, so that its float64 is good to 1e-7
    only; with ``rope`` given, both follow the same formulas in float64 throughout.
    """
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa")
    return widened(model, rope) if rope is not None else model


def widened(model: Any, rope: RopeConfig) -> Any:
    """``model`` with norms and angles in float64."""
    model = model.to(torch.float64)
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = MethodType(_norm, module)
        if type(module).__name__.endswith("RotaryEmbedding"):
            module.forward = _angles(frequencies(rope, torch.float64))
    return model


def _norm(self: Any, x: Tensor) -> Tensor:
    weight: nn.Parameter = self.weight
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def _angles(inverse: Tensor) -> Any:
    def forward(x: Tensor, position_ids: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
        angles = position_ids[..., None].double() * inverse
        both = torch.cat((angles, angles), -1)
        return both.cos(), both.sin()

    return forward


def oracle_logits(model: Any, tokens: Sequence[int]) -> Tensor:
    """(tokens, vocabulary), in one pass without a cache."""
    with torch.inference_mode():
        logits: Tensor = model(torch.tensor([list(tokens)])).logits[0]
    return logits


def far(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, as a share of the largest logit."""
    return float((ours - theirs).abs().max() / theirs.abs().max())
