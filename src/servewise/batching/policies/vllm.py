"""vLLM's scheduler with vLLM's setting names: read in vllm 0.19.0, ``vllm/v1/core/sched/scheduler.py``."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.batching.admission.by_chunk import ByChunk
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.filling.ahead import Ahead
from servewise.batching.filling.batcher import ContinuousBatcher
from servewise.batching.filling.decode_first import DecodeFirst
from servewise.batching.filling.whole_beside import WholeBesideDecodes
from servewise.batching.positive import one_of, positive
from servewise.batching.retreat.recompute import Recompute
from servewise.batching.retreat.swap import Swap
from servewise.batching.retreat.victims import lowest_priority, youngest
from servewise.batching.waiting.arrival import ArrivalQueue
from servewise.batching.waiting.ranked import RankedQueue, priority
from servewise.errors import InputError


class AheadDecodeFirst(Ahead, DecodeFirst):
    """Chunked prefill under async scheduling."""


class AheadWhole(Ahead, WholeBesideDecodes):
    """Whole prompts under async scheduling."""


@dataclass(frozen=True, slots=True)
class Vllm:
    """vLLM v1. ``max_num_seqs`` and ``max_num_batched_tokens`` depend on hardware and use, so they are given.

    Their defaults (``engine/arg_utils.py`` ``get_batch_defaults``): an API server on 70 GiB or more that is no A100
    takes 1024 and 8192, any other GPU 256 and 2048.

    Modelled, from ``Scheduler.schedule``:

    - every step decodes all running sequences, one token each; what is left of ``max_num_batched_tokens`` goes to
      prompts, those under way first, then waiting ones while slots (``max_num_seqs``) and blocks last;
    - ``enable_chunked_prefill``: a prompt takes what the budget leaves, at most ``long_prefill_token_threshold`` (0: no
      bound) a step; without it a prompt that does not fit whole ends the step's admissions;
    - blocks are taken chunk by chunk (``allocate_slots``); ``scheduler_reserve_full_isl``: only if the whole prompt
      would fit (``can_fit_full_sequence``), which reserves nothing;
    - when blocks run out the last of the running ones goes back (fcfs), or the one of the highest ``priority`` number,
      equals the latest (priority); in such a step nobody is admitted. A preempted sequence is first in line (fcfs), and
      finds again what the prefix cache kept of it;
    - ``async_scheduling``, on by default: decisions lag one step (``filling/ahead.py``).

    ``preemption_mode`` ``swap`` is vLLM v0's (``core/scheduler.py``, 0.6.6), with ``swap_blocks`` on the host
    (``swap_space``); v1 has recompute only.

    Not modelled: a block is found by others once its step has run, where vLLM shares it with whoever is admitted in the
    very same step; LoRA, encoder and multimodal budgets, structured output, KV connectors, blocks freed behind a
    sliding window, ``max_model_len``. Where long chunks are bounded, vLLM walks all running ones in order of admission,
    so that a young one can find the budget used up and skip a token; here decodes come first.
    ``max_num_partial_prefills`` and ``max_long_partial_prefills`` above 1 are refused, as by vLLM 0.19
    (``_check_feature_supported``).
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    enable_chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    max_num_partial_prefills: int = 1
    max_long_partial_prefills: int = 1
    scheduling_policy: str = "fcfs"
    enable_prefix_caching: bool = True
    scheduler_reserve_full_isl: bool = True
    async_scheduling: bool = True
    preemption_mode: str = "recompute"
    swap_blocks: int = 0

    name = "vllm"

    def __post_init__(self) -> None:
        """Refuse what vLLM refuses."""
        positive("max_num_seqs", self.max_num_seqs)
        positive("max_num_batched_tokens", self.max_num_batched_tokens)
        positive("long_prefill_token_threshold", self.long_prefill_token_threshold, zero=True)
        positive("swap_blocks", self.swap_blocks, zero=True)
        one_of("scheduling_policy", self.scheduling_policy, ("fcfs", "priority"))
        one_of("preemption_mode", self.preemption_mode, ("recompute", "swap"))
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise InputError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) is below max_num_seqs ({self.max_num_seqs})",
                hint="every running sequence decodes one token a step; raise the one or lower the other",
            )
        if (self.max_num_partial_prefills, self.max_long_partial_prefills) != (1, 1):
            raise InputError(
                "concurrent partial prefills are not supported by vLLM v1",
                hint="leave max_num_partial_prefills and max_long_partial_prefills at 1",
            )

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        return self.max_num_seqs

    @property
    def prefix_cache(self) -> bool:
        """Whether prefixes are shared."""
        return self.enable_prefix_caching

    @property
    def describe(self) -> str:
        """The policy in words, for conditions."""
        parts = [f"vLLM v1, {self.max_num_seqs} sequences, {self.max_num_batched_tokens} tokens a step"]
        parts += ["chunked prefill" if self.enable_chunked_prefill else "whole prompts"]
        if self.long_prefill_token_threshold:
            parts += [f"chunks up to {self.long_prefill_token_threshold} tokens"]
        parts += ["by priority"] * (self.scheduling_policy == "priority")
        parts += ["prefix cache"] * self.enable_prefix_caching
        parts += ["async scheduling"] * self.async_scheduling
        parts += ["no check that a whole prompt fits"] * (not self.scheduler_reserve_full_isl)
        parts += [f"swap to {self.swap_blocks} blocks on the host"] * (self.preemption_mode == "swap")
        return ", ".join(parts)

    def batcher(
        self, pool: BlockPool, window_tokens: int | None = None, group: GroupMaker = DecodeGroup
    ) -> ContinuousBatcher:
        """The policy at work on ``pool``; ``group`` makes its decode group."""
        by_priority = self.scheduling_policy == "priority"
        batcher = self._kind()(
            pool,
            ByChunk(pool, whole_must_fit=self.scheduler_reserve_full_isl),
            max_sequences=self.max_num_seqs,
            max_batched_tokens=self.max_num_batched_tokens,
            window_tokens=window_tokens,
            group=group,
            waiting=RankedQueue(priority) if by_priority else ArrivalQueue(),
            victim=lowest_priority if by_priority else youngest,
            way_back=Swap(self.swap_blocks, pool.block_tokens) if self.preemption_mode == "swap" else Recompute(),
        )
        if self.long_prefill_token_threshold:
            batcher.longest_chunk = self.long_prefill_token_threshold
        return batcher

    def _kind(self) -> type[DecodeFirst]:
        if self.enable_chunked_prefill:
            return AheadDecodeFirst if self.async_scheduling else DecodeFirst
        return AheadWhole if self.async_scheduling else WholeBesideDecodes
