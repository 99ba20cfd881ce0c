"""What an engine said about its memory when it started."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupFacts:
    """Figures of one start-up log, all bytes on one accelerator; None where the log does not say.

    With several workers the largest weights, activations and graphs stand, and the smallest pool, since the fewest
    tokens bind. ``non_torch_bytes`` is what was allocated outside of the framework; ``consumed_bytes`` are weights
    and that together, where the log prints only their sum. ``kv_tokens`` is as printed (a hybrid model's is
    concurrency x longest request in vLLM 0.11 and later). ``needed_kv_bytes`` and a set ``refusal`` come from an
    engine that would not start. ``lines`` counts what was recognised.
    """

    engine: str
    version: str | None = None
    model: str | None = None
    lines: int = 0
    total_bytes: float | None = None
    memory_utilization: float | None = None
    weight_bytes: float | None = None
    consumed_bytes: float | None = None
    non_torch_bytes: float | None = None
    activation_bytes: float | None = None
    graph_bytes: float | None = None
    estimated_graph_bytes: float | None = None
    available_before_load_bytes: float | None = None
    available_after_load_bytes: float | None = None
    kv_bytes: float | None = None
    state_bytes: float | None = None
    kv_tokens: int | None = None
    blocks: int | None = None
    block_tokens: int | None = None
    max_concurrency: float | None = None
    needed_kv_bytes: float | None = None
    refusal: str | None = None
    max_context_tokens: int | None = None
    max_batched_tokens: int | None = None
    max_sequences: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    decode_context: int | None = None
    kv_dtype: str | None = None

    @property
    def pool_tokens(self) -> int | None:
        """Tokens of the pool: as printed, or blocks times their size."""
        if self.kv_tokens is not None:
            return self.kv_tokens
        return self.blocks * (self.block_tokens or 16) if self.blocks is not None else None
