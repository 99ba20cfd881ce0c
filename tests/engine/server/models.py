"""Models that misbehave, or take their time."""

from __future__ import annotations

import time

from torch import Tensor

from servewise.engine.config import DecoderConfig
from servewise.engine.step import KvCache, Model, StepInput


class Slow:
    """A model whose steps take at least ``seconds``."""

    def __init__(self, model: Model, seconds: float) -> None:
        self._model, self._seconds = model, seconds

    @property
    def config(self) -> DecoderConfig:
        return self._model.config

    def new_cache(self, blocks: int, block_tokens: int = 16) -> KvCache:
        return self._model.new_cache(blocks, block_tokens)

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        time.sleep(self._seconds)
        return self._model.step(step, cache)


class Failing:
    """A model whose next ``failures`` steps raise."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.failures = 0

    @property
    def config(self) -> DecoderConfig:
        return self._model.config

    def new_cache(self, blocks: int, block_tokens: int = 16) -> KvCache:
        return self._model.new_cache(blocks, block_tokens)

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the device fell off the bus")
        return self._model.step(step, cache)
