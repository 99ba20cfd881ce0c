"""TensorRT-LLM's batch waiting, around its preset: prompts wait so that several go through one step together.

``PyExecutor._waiting_requests`` (tensorrt_llm/_torch/pyexecutor/py_executor.py, 1.1): while sequences decode, contexts
stay out until their tokens reach ``batch_wait_max_tokens_ratio`` x ``max_num_tokens`` or ``batch_wait_timeout_iters``
steps have passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies.trtllm import TrtLlm
from servewise.batching.sequence import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """``inner`` with batch waiting; a policy like any other."""

    inner: TrtLlm
    batch_wait_timeout_iters: int
    batch_wait_max_tokens_ratio: float

    name = "trtllm, batch waiting"
    prefix_cache = False

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        return self.inner.slots

    def batcher(self, pool: BlockPool, window_tokens: int | None = None, *more: Any) -> HeldBatcher:
        """The policy at work on ``pool``."""
        return HeldBatcher(self, self.inner.batcher(pool, window_tokens, *more))


class HeldBatcher:
    """A batcher at whose door prompts wait for company."""

    decides_ahead = False  # the driver is to tell it every step: steps are what it counts

    def __init__(self, policy: Held, inner: Batcher) -> None:
        self._most_steps = policy.batch_wait_timeout_iters
        self._enough_tokens = policy.batch_wait_max_tokens_ratio * policy.inner.max_num_tokens
        self._inner = inner
        self._door: list[Sequence] = []
        self._steps = 0

    def __getattr__(self, name: str) -> Any:
        """All else is the inner batcher's."""
        return getattr(self._inner, name)

    @property
    def waiting_count(self) -> int:
        """Sequences that wait, at the door or inside."""
        return self._inner.waiting_count + len(self._door)

    def add(self, sequence: Sequence, now_s: float) -> bool:  # noqa: ARG002 - the seam of all policies
        """Let ``sequence`` stand at the door; every request of a measured run can run."""
        self._door.append(sequence)
        return True

    def plan(self, now_s: float) -> Batch | None:
        """The next step, alone while somebody stands at the door."""
        if not self._door:
            return self._inner.plan(now_s)
        if not self._waits():
            self._open(now_s)
            return self._inner.plan(now_s)
        self._steps += 1
        batch = self._inner.plan(now_s)
        return batch if batch is None or batch.repeat == 1 else batch._replace(repeat=1)

    def unreleased(self) -> Iterator[Sequence]:
        """Every sequence that waits or runs."""
        yield from self._inner.unreleased()
        yield from self._door

    def _waits(self) -> bool:
        tokens = sum(each.prompt_tokens for each in self._door)
        return self._inner.group.size > 0 and self._steps < self._most_steps and tokens < self._enough_tokens

    def _open(self, now_s: float) -> None:
        self._steps = 0
        for sequence in self._door:
            self._inner.add(sequence, now_s)
        self._door = []
