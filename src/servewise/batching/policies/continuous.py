"""Continuous batching: ended sequences leave and waiting ones join at every step."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.batching.admission.reserved import Reserved
from servewise.batching.admission.whole_prompt import WholePrompt
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.filling.batcher import ContinuousBatcher
from servewise.batching.filling.decode_first import DecodeFirst
from servewise.batching.filling.prefill_first import PrefillFirst
from servewise.batching.positive import one_of, positive
from servewise.batching.retreat.recompute import Recompute
from servewise.batching.retreat.swap import Swap
from servewise.batching.retreat.victims import lowest_priority, youngest
from servewise.batching.waiting.arrival import ArrivalQueue
from servewise.batching.waiting.ranked import RankedQueue, priority, shortest_output, shortest_prompt
from servewise.errors import InputError

ORDERS = {"priority": priority, "shortest_prompt": shortest_prompt, "shortest_output": shortest_output}


@dataclass(frozen=True, slots=True)
class Continuous:
    """Up to ``max_sequences`` at once, up to ``max_batched_tokens`` new tokens a step.

    ``chunked_prefill``: a prompt may be split over steps, decode first (vLLM v1); otherwise whole prompts run in
    steps of their own, ahead of decode (vLLM v0, Orca). ``reserve_output``: blocks for prompt and output are taken
    at admission, so that nothing is ever preempted; otherwise blocks grow and the youngest is preempted by
    recompute when they run out. ``prefix_cache``: full blocks are kept by hash, least recently used evicted.

    ``order`` in which waiting ones are admitted: fcfs, priority (then the lowest priority is preempted), or
    shortest_prompt, shortest_output (shortest job first, the second with lengths foretold). ``watermark``: the share of
    the pool that stays free when one is admitted beside others (vLLM v0: 0.01). ``swap_blocks``: KV blocks that the
    host takes from preempted ones before they are recomputed.
    """

    max_sequences: int = 256
    max_batched_tokens: int = 8192
    chunked_prefill: bool = True
    reserve_output: bool = False
    prefix_cache: bool = False
    order: str = "fcfs"
    watermark: float = 0.0
    swap_blocks: int = 0

    name = "continuous"

    def __post_init__(self) -> None:
        """Refuse limits below 1, and a token budget that the decoding sequences alone could use up."""
        positive("max sequences", self.max_sequences)
        positive("max batched tokens", self.max_batched_tokens)
        positive("watermark", self.watermark, zero=True)
        positive("swap blocks", self.swap_blocks, zero=True)
        one_of("order", self.order, ("fcfs", *ORDERS))
        if self.watermark >= 1:
            raise InputError(f"a watermark of {self.watermark} holds the whole pool back", hint="a share below 1")
        if self.chunked_prefill and self.max_batched_tokens < self.max_sequences:
            raise InputError(
                f"max batched tokens ({self.max_batched_tokens}) are fewer than max sequences ({self.max_sequences})",
                hint="every running sequence decodes one token a step; raise the one or lower the other",
            )

    @property
    def describe(self) -> str:
        """The policy in words, for conditions."""
        parts = [f"continuous, {self.max_sequences} slots, {self.max_batched_tokens} tokens a step"]
        parts += ["chunked prefill" if self.chunked_prefill else "whole prompts"]
        parts += ["reserved output"] * self.reserve_output + ["prefix cache"] * self.prefix_cache
        parts += [f"{self.order} first"] * (self.order != "fcfs")
        parts += [f"watermark {self.watermark:g}"] * (self.watermark > 0)
        parts += [f"swap to {self.swap_blocks} blocks on the host"] * (self.swap_blocks > 0)
        return ", ".join(parts)

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        return self.max_sequences

    def batcher(
        self, pool: BlockPool, window_tokens: int | None = None, group: GroupMaker = DecodeGroup
    ) -> ContinuousBatcher:
        """The policy at work on ``pool``; ``group`` makes its decode group."""
        kind = DecodeFirst if self.chunked_prefill else PrefillFirst
        return kind(
            pool,
            Reserved(pool) if self.reserve_output else WholePrompt(pool, int(self.watermark * (pool.total or 0))),
            max_sequences=self.max_sequences,
            max_batched_tokens=self.max_batched_tokens,
            window_tokens=window_tokens,
            group=group,
            waiting=RankedQueue(ORDERS[self.order]) if self.order in ORDERS else ArrivalQueue(),
            victim=lowest_priority if self.order == "priority" else youngest,
            way_back=Swap(self.swap_blocks, pool.block_tokens) if self.swap_blocks else Recompute(),
        )
