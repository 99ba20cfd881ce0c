"""llama.cpp's server with its setting names: read in ``tools/server/server-context.cpp`` (llama-cpp-python 0.3.36)."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.batching.admission.by_chunk import ByChunk
from servewise.batching.admission.reserved import Reserved
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.filling.batcher import ContinuousBatcher
from servewise.batching.filling.decode_first import DecodeFirst
from servewise.batching.filling.prompts_alone import PromptsAlone
from servewise.batching.positive import positive
from servewise.errors import InputError


@dataclass(frozen=True, slots=True)
class LlamaCpp:
    """llama.cpp's server, with its defaults (``common/common.h``; ``server.cpp``: 4 slots on a unified cache).

    The pool is ``n_ctx``. Modelled, from ``update_slots``:

    - a request waits for one of ``n_parallel`` slots, first come, first served, and holds it to its end;
    - each step every generating slot adds its token, then prompts are added, up to ``n_batch`` tokens in all; a prompt
      that does not fit goes on in the next step. ``n_ubatch`` cuts the step into what the device computes at once: the
      estimator's affair. Without ``cont_batching`` prompts wait until nobody generates;
    - without ``kv_unified`` each slot has an ``n_parallel``-th of the cache to itself, and a request that is longer is
      refused. With it slots share the cache, and nothing is held back for anyone.

    When the unified cache is full llama.cpp ends all requests under way with an error ("Context size has been
    exceeded"); here the youngest goes back and is computed again, so a preemption in the records stands for such an
    error. ``cache_prompt``: a prefix counts as cached wherever the pool has it; llama.cpp finds it only in the one slot
    that it chooses (``slot_prompt_similarity``) or in its RAM copies (``cache_ram``). Not modelled: prompts in order of
    slots and not of admission, checkpoints, context shift, embeddings, LoRA.
    """

    n_parallel: int = 4
    n_batch: int = 2048
    n_ubatch: int = 512
    cont_batching: bool = True
    kv_unified: bool = True
    cache_prompt: bool = True

    name = "llamacpp"

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        positive("n_parallel", self.n_parallel)
        positive("n_batch", self.n_batch)
        positive("n_ubatch", self.n_ubatch)
        if self.n_parallel > self.n_batch:
            raise InputError(
                f"n_parallel ({self.n_parallel}) is above n_batch ({self.n_batch})",
                hint="every slot adds a token to the batch; raise n_batch",
            )

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        return self.n_parallel

    @property
    def prefix_cache(self) -> bool:
        """Whether prefixes are shared."""
        return self.cache_prompt

    @property
    def describe(self) -> str:
        """The policy in words, for conditions."""
        parts = [f"llama.cpp, {self.n_parallel} slots, {self.n_batch} tokens a step"]
        parts += ["unified KV cache" if self.kv_unified else "a cache for each slot"]
        parts += ["prompts only while nobody generates"] * (not self.cont_batching)
        parts += ["prompt cache"] * self.cache_prompt
        return ", ".join(parts)

    def batcher(
        self, pool: BlockPool, window_tokens: int | None = None, group: GroupMaker = DecodeGroup
    ) -> ContinuousBatcher:
        """The policy at work on ``pool``; ``group`` makes its decode group."""
        slot_tokens = None if pool.total is None else pool.total // self.n_parallel * pool.block_tokens
        return (DecodeFirst if self.cont_batching else PromptsAlone)(
            pool,
            ByChunk(pool, whole_must_fit=False) if self.kv_unified else Reserved(pool, slot_tokens),
            max_sequences=self.n_parallel,
            max_batched_tokens=self.n_batch,
            window_tokens=window_tokens,
            group=group,
        )
