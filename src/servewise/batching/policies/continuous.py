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
from servewise.batching.positive import positive
from servewise.errors import InputError


@dataclass(frozen=True, slots=True)
class Continuous:
    """Up to ``max_sequences`` at once, up to ``max_batched_tokens`` new tokens a step.

    ``chunked_prefill``: a prompt may be split over steps, decode first (vLLM v1); otherwise whole prompts run in
    steps of their own, ahead of decode (vLLM v0, Orca). ``reserve_output``: blocks for prompt and output are taken
    at admission, so that nothing is ever preempted; otherwise blocks grow and the youngest is preempted by
    recompute when they run out. ``prefix_cache``: full blocks are kept by hash, least recently used evicted.
    """

    max_sequences: int = 256
    max_batched_tokens: int = 8192
    chunked_prefill: bool = True
    reserve_output: bool = False
    prefix_cache: bool = False

    name = "continuous"

    def __post_init__(self) -> None:
        """Refuse limits below 1, and a token budget that the decoding sequences alone could use up."""
        positive("max sequences", self.max_sequences)
        positive("max batched tokens", self.max_batched_tokens)
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
            Reserved(pool) if self.reserve_output else WholePrompt(pool),
            max_sequences=self.max_sequences,
            max_batched_tokens=self.max_batched_tokens,
            window_tokens=window_tokens,
            group=group,
        )
