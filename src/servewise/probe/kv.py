"""What a KV cache saves and that it changes nothing, on a real model: the same greedy reply with and without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from servewise.engine.config import DecoderConfig
from servewise.engine.step import KvCache, Model, StepInput
from servewise.probe.steps import BLOCK_TOKENS, StepKey, step_of


class CountingModel:
    """A model that counts the positions it processes."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.positions = 0

    @property
    def config(self) -> DecoderConfig:
        """The model's."""
        return self._model.config

    def new_cache(self, blocks: int, block_tokens: int = BLOCK_TOKENS) -> KvCache:
        """The model's."""
        return self._model.new_cache(blocks, block_tokens)

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        """The model's step; its new tokens are counted."""
        self.positions += len(step.tokens_T)
        return self._model.step(step, cache)


@dataclass(slots=True)
class Reply:
    """A greedy reply as it grew: token i, the logits it was taken from (V in float64), and after how much work.

    ``positions`` and ``seconds`` are sums up to and with the work that token i stands for. ``margins``: how far the
    best logit was above the second.
    """

    tokens: list[int] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def take(self, logits_RV: Tensor) -> int:
        """The greedy token of the one row."""
        row = logits_RV[0].to(torch.float64)
        first, second = torch.topk(row, 2).values.tolist()
        self.tokens.append(int(row.argmax()))
        self.logits.append(row)
        self.margins.append(first - second)
        return self.tokens[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheWork:
    """The work for ``tokens`` tokens after the prompt, without and with a cache; what both runs agree on.

    ``largest_difference`` is over every logit of every token (while the tokens are equal; the runs are different
    texts after that), ``smallest_margin`` the least gap between best and second-best logit, ``equal_tokens`` how many
    leading tokens are equal.
    """

    tokens: int
    positions_without: int
    positions_with: int
    seconds_without: float
    seconds_with: float
    equal_tokens: int
    largest_difference: float
    smallest_margin: float
    largest_logit: float


def reply_without_cache(
    model: Model, prompt: Sequence[int], tokens: int, progress: Callable[[], None] | None = None
) -> Reply:
    """Each token from all the text before it, computed anew."""
    counting, reply, text = CountingModel(model), Reply(), list(prompt)
    cache = counting.new_cache(_blocks(len(prompt) + tokens))
    began = time.perf_counter()
    for _ in range(tokens):
        text.append(reply.take(counting.step(_step("prefill", text, model.config.vocabulary), cache)))
        reply.positions.append(counting.positions)
        reply.seconds.append(time.perf_counter() - began)
        if progress is not None:
            progress()
    return reply


def reply_with_cache(
    model: Model, prompt: Sequence[int], tokens: int, progress: Callable[[], None] | None = None
) -> Reply:
    """The prompt once, then each token on its own, the last one too: its keys and values are in the cache at the end.

    So N tokens stand for prompt + N positions, as the study counts; the tokens alone would need one less.
    """
    counting, reply, text = CountingModel(model), Reply(), list(prompt)
    cache = counting.new_cache(_blocks(len(prompt) + tokens))
    began = time.perf_counter()
    logits = counting.step(_step("prefill", text, model.config.vocabulary), cache)
    for _ in range(tokens):
        text.append(reply.take(logits))
        logits = counting.step(_step("decode", text, model.config.vocabulary), cache)
        reply.positions.append(counting.positions)
        reply.seconds.append(time.perf_counter() - began)
        if progress is not None:
            progress()
    return reply


def cache_work(without: Reply, cached: Reply, tokens: int) -> CacheWork:
    """Both replies up to ``tokens`` tokens side by side."""
    pairs = zip(without.tokens[:tokens], cached.tokens[:tokens], strict=True)
    equal = next((place for place, (one, other) in enumerate(pairs) if one != other), tokens)
    compared = min(equal + 1, tokens)  # the logits behind the first difference still belong to one text
    rows = list(zip(without.logits[:compared], cached.logits[:compared], strict=True))
    return CacheWork(
        tokens=tokens,
        positions_without=without.positions[tokens - 1],
        positions_with=cached.positions[tokens - 1],
        seconds_without=without.seconds[tokens - 1],
        seconds_with=cached.seconds[tokens - 1],
        equal_tokens=equal,
        largest_difference=max(float((one - other).abs().max()) for one, other in rows),
        smallest_margin=min(without.margins[:compared] + cached.margins[:compared]),
        largest_logit=max(float(one.abs().max()) for one, _ in rows),
    )


def _step(phase: str, text: Sequence[int], vocabulary: int) -> StepInput:
    step = step_of(StepKey(phase, 1, len(text)), vocabulary)
    return replace(step, tokens_T=torch.tensor(text[-len(step.tokens_T) :]))


def _blocks(tokens: int) -> int:
    return -(-tokens // BLOCK_TOKENS)
