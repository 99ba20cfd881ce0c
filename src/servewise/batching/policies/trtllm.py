"""TensorRT-LLM's schedulers with its setting names: read in ``cpp/tensorrt_llm/batch_manager/`` of 2025.

``capacityScheduler.cpp`` (02a10fed) decides who holds KV, ``microBatchScheduler.cpp`` (0a949d31) what a step computes.
Over pipeline stages: ``tensorrt_llm/_torch/pyexecutor`` of 1.0, ``_util.py`` (create_py_executor_instance) and
``py_executor.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from servewise.batching.admission.reserved import Reserved
from servewise.batching.admission.whole_prompt import WholePrompt
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.filling.ahead import Ahead
from servewise.batching.filling.batcher import ContinuousBatcher
from servewise.batching.filling.context_chunks import ContextChunks, equal_progress, first_come
from servewise.batching.filling.whole_beside import WholeBesideDecodes
from servewise.batching.positive import one_of, positive
from servewise.errors import InputError

SHARES = {"FIRST_COME_FIRST_SERVED": first_come, "EQUAL_PROGRESS": equal_progress}


class AheadContextChunks(Ahead, ContextChunks):
    """Chunked context under the overlap scheduler."""


class AheadWholeContexts(Ahead, WholeBesideDecodes):
    """Whole contexts under the overlap scheduler."""


@dataclass(frozen=True, slots=True)
class TrtLlm:
    """TensorRT-LLM's in-flight batching, with the defaults of its LLM API (``llmapi/llm_args.py``).

    Modelled:

    - every step decodes all running sequences; what is left of ``max_num_tokens`` goes to contexts (prompts), in order;
    - ``GUARANTEED_NO_EVICT``: a request starts when blocks for its prompt and all of its output are left beside those
      that the running ones may yet take; nothing is ever paused. ``MAX_UTILIZATION``: it starts when its prompt fits;
      when a step finds no blocks the one that started last is paused and computed again, and nobody starts;
    - without ``enable_chunked_prefill`` a context that does not fit whole ends the step; with it contexts are cut to
      multiples of ``tokens_per_block`` by ``context_chunking_policy``;
    - the overlap scheduler, on by default: decisions lag one step (``filling/ahead.py``);
    - over ``pipeline_parallel_size`` stages there are as many micro-batches, and ``max_batch_size`` and
      ``max_num_tokens`` are those of one: a server holds ``max_batch_size * mapping.pp_size`` sequences, where vLLM's
      and SGLang's limits are of the whole server. Their loop has no overlap (``event_loop = _executor_loop_pp``).

    ``tokens_per_block`` is the unit of chunks; the pool has its own block size and should be given the same. Not
    modelled: STATIC_BATCH (``Static``) and PREFILL_FIRST, waiting for another request's context to reuse its blocks
    (``beneficialToSkip``), batch waiting, host offload of blocks, beam search, LoRA, ADP balance; a short context
    passing a longer one that got no tokens.
    """

    max_batch_size: int = 2048
    max_num_tokens: int = 8192
    capacity_scheduler_policy: str = "GUARANTEED_NO_EVICT"
    enable_chunked_prefill: bool = False
    context_chunking_policy: str = "FIRST_COME_FIRST_SERVED"
    tokens_per_block: int = 32
    enable_block_reuse: bool = True
    disable_overlap_scheduler: bool = False
    pipeline_parallel_size: int = 1

    name = "trtllm"

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        positive("max_batch_size", self.max_batch_size)
        positive("max_num_tokens", self.max_num_tokens)
        positive("tokens_per_block", self.tokens_per_block)
        positive("pipeline_parallel_size", self.pipeline_parallel_size)
        for what, value in (("max_batch_size", self.max_batch_size), ("tokens_per_block", self.tokens_per_block)):
            if value > self.max_num_tokens:
                raise InputError(
                    f"{what} ({value}) is above max_num_tokens ({self.max_num_tokens})",
                    hint="every running request takes a token a step, a context chunk a block; raise max_num_tokens",
                )
        known = ("GUARANTEED_NO_EVICT", "MAX_UTILIZATION")
        one_of("capacity_scheduler_policy", self.capacity_scheduler_policy, known)
        one_of("context_chunking_policy", self.context_chunking_policy, tuple(SHARES))

    @property
    def slots(self) -> int:
        """Sequences at once at most, those of all micro-batches."""
        return self.max_batch_size * self.pipeline_parallel_size

    @property
    def overlaps(self) -> bool:
        """Whether the next step is decided while one runs."""
        return not self.disable_overlap_scheduler and self.pipeline_parallel_size == 1

    @property
    def prefix_cache(self) -> bool:
        """Whether prefixes are shared."""
        return self.enable_block_reuse

    @property
    def describe(self) -> str:
        """The policy in words, for conditions."""
        parts = [f"TensorRT-LLM, {self.max_batch_size} sequences, {self.max_num_tokens} tokens a step"]
        parts += [f"{self.pipeline_parallel_size} such batches"] * (self.pipeline_parallel_size > 1)
        parts += [self.capacity_scheduler_policy]
        parts += [
            f"context chunks {self.context_chunking_policy} by {self.tokens_per_block}"
            if self.enable_chunked_prefill
            else "whole contexts"
        ]
        parts += ["block reuse"] * self.enable_block_reuse + ["overlap"] * self.overlaps
        return ", ".join(parts)

    def batcher(
        self, pool: BlockPool, window_tokens: int | None = None, group: GroupMaker = DecodeGroup
    ) -> ContinuousBatcher:
        """The policy at work on ``pool``; ``group`` makes its decode group."""
        no_evict = self.capacity_scheduler_policy == "GUARANTEED_NO_EVICT"
        batcher = self._kind()(
            pool,
            Reserved(pool) if no_evict else WholePrompt(pool),
            max_sequences=self.slots,
            max_batched_tokens=self.max_num_tokens,
            window_tokens=window_tokens,
            group=group,
        )
        if isinstance(batcher, ContextChunks):
            batcher.unit = self.tokens_per_block
            batcher.shares = SHARES[self.context_chunking_policy]
        return batcher

    def _kind(self) -> type[ContextChunks] | type[WholeBesideDecodes]:
        if self.enable_chunked_prefill:
            return AheadContextChunks if self.overlaps else ContextChunks
        return AheadWholeContexts if self.overlaps else WholeBesideDecodes
