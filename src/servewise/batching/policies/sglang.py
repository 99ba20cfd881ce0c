"""SGLang's scheduler with SGLang's setting names: read in sglang 0.5.6, ``sglang/srt/managers/``."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from servewise.batching.admission.expected_output import ExpectedOutput, NewTokenRatio
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.filling.ahead import Ahead
from servewise.batching.filling.batcher import ContinuousBatcher
from servewise.batching.filling.prefill_batches import PrefillBatches
from servewise.batching.positive import one_of, positive
from servewise.batching.waiting.arrival import EndOfQueue
from servewise.batching.waiting.longest_prefix import LongestPrefixQueue
from servewise.batching.waiting.queue import WaitingQueue
from servewise.batching.waiting.ranked import RankedQueue, longest_output
from servewise.errors import InputError


class AheadPrefillBatches(Ahead, PrefillBatches):
    """Prefill batches under the overlap scheduler."""


@dataclass(frozen=True, slots=True)
class Sglang:
    """SGLang. ``max_running_requests`` and ``chunked_prefill_size`` depend on memory and card, so they are given.

    Their defaults (``server_args.py``): chunks of 2048 tokens on cards under 35 GiB, 4096 under 60, 8192 under 160,
    16384 above; -1 turns chunks off. Running requests: pool tokens / context * 512, from 2048 to 4096.

    Modelled, from ``get_next_batch_to_run``, ``PrefillAdder`` and ``retract_decode``:

    - while waiting prompts can be added a step is a prefill batch, else it decodes; ``enable_mixed_chunk`` lets the
      running sequences decode in prefill batches too;
    - a prefill batch holds ``max_prefill_tokens`` input tokens (its first prompt may be longer) and
      ``chunked_prefill_size`` computed ones; the prompt that passes that goes on in the next batch, one at a time;
    - a prompt is added while it and its whole output (4096 tokens at most) are fewer than the tokens that are free
      beside what the running ones are expected to make: ``new_token_ratio`` of what they may yet make, from 0.7 of
      ``schedule_conservativeness`` down with every decode step; once one does not fit, none is tried before one ends
      or is retracted (``batch_is_full``);
    - when a decode step finds no blocks, those with the fewest tokens made go back, the longest prompts first, and
      queue at the end; their KV is computed again, apart from cached prefixes;
    - ``schedule_policy``: ``fcfs``; ``lpm``, the longest cached prefix first; ``lof``, the longest output first;
    - the overlap scheduler, on by default: decisions lag one step (``filling/ahead.py``).

    ``page_size`` is the pool's block (SGLang's default: 1 token). Not modelled: priority scheduling, dfs-weight, the
    rule for ``ignore_eos`` without a radix cache, hierarchical cache, DP attention, sliding-window pools, LoRA, the
    extra row that the overlap runs of an ended request. Prefixes match by hash blocks, where the radix tree matches
    by page.
    """

    max_running_requests: int
    chunked_prefill_size: int
    max_prefill_tokens: int = 16384
    schedule_policy: str = "fcfs"
    schedule_conservativeness: float = 1.0
    enable_mixed_chunk: bool = False
    disable_radix_cache: bool = False
    disable_overlap_schedule: bool = False

    name = "sglang"

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        positive("max_running_requests", self.max_running_requests)
        positive("max_prefill_tokens", self.max_prefill_tokens)
        if self.chunked_prefill_size != -1:
            positive("chunked_prefill_size", self.chunked_prefill_size)
        one_of("schedule_policy", self.schedule_policy, ("fcfs", "lpm", "lof"))
        if not (isfinite(self.schedule_conservativeness) and self.schedule_conservativeness >= 0):
            raise InputError(
                f"schedule_conservativeness must not be negative, not {self.schedule_conservativeness!r}",
                hint="1.0 is SGLang's default; more admits fewer at once",
            )

    @property
    def slots(self) -> int:
        """Sequences at once at most."""
        return self.max_running_requests

    @property
    def prefix_cache(self) -> bool:
        """Whether prefixes are shared."""
        return not self.disable_radix_cache

    @property
    def describe(self) -> str:
        """The policy in words, for conditions."""
        chunks = f"chunks of {self.chunked_prefill_size}" if self.chunked_prefill_size != -1 else "whole prompts"
        parts = [f"SGLang, {self.max_running_requests} requests, prefill batches of {self.max_prefill_tokens} tokens"]
        parts += [chunks, f"{self.schedule_policy}, conservativeness {self.schedule_conservativeness:g}"]
        parts += ["decode beside chunks"] * self.enable_mixed_chunk
        parts += ["radix cache"] * (not self.disable_radix_cache)
        parts += ["overlap"] * (not self.disable_overlap_schedule)
        return ", ".join(parts)

    def batcher(
        self, pool: BlockPool, window_tokens: int | None = None, group: GroupMaker = DecodeGroup
    ) -> ContinuousBatcher:
        """The policy at work on ``pool``; ``group`` makes its decode group.

        Raises InputError where chunks are no whole pages, as SGLang does.
        """
        chunks = self.chunked_prefill_size
        if chunks != -1 and chunks % pool.block_tokens:
            raise InputError(
                f"chunked_prefill_size ({chunks}) is no multiple of the page size ({pool.block_tokens})",
                hint="choose chunks of whole pages",
            )
        kind = PrefillBatches if self.disable_overlap_schedule else AheadPrefillBatches
        return kind(
            pool,
            ExpectedOutput(pool, NewTokenRatio(self.schedule_conservativeness)),
            max_sequences=self.max_running_requests,
            max_prefill_tokens=self.max_prefill_tokens,
            chunked_prefill_size=None if chunks == -1 else chunks,
            mixed=self.enable_mixed_chunk and chunks != -1,
            waiting=self._queue(pool),
            window_tokens=window_tokens,
            group=group,
        )

    def _queue(self, pool: BlockPool) -> WaitingQueue:
        if self.schedule_policy == "lof":
            return RankedQueue(longest_output)
        if self.schedule_policy == "lpm" and not self.disable_radix_cache:
            return LongestPrefixQueue(pool)
        return EndOfQueue()
