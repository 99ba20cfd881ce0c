"""One step's tensors. Legend: T new tokens in the step, S sequences, R rows whose logits are wanted, V vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from servewise.engine.config import DecoderConfig


@dataclass(frozen=True, slots=True)
class StepInput:
    """The sequences of one step back to back.

    Sequence s has new tokens ``query_starts[s]`` to ``query_starts[s + 1]`` - 1 of T and, after this step,
    ``context_tokens[s]`` tokens in the cache, in the blocks of ``block_tables[s]`` (token i lies in block
    ``block_tables[s][i // block_tokens]`` at offset ``i % block_tokens``). ``slots_T`` says where each new token's
    keys and values go: block x block_tokens + offset. ``rows_R`` index T.
    """

    tokens_T: Tensor
    positions_T: Tensor
    slots_T: Tensor
    query_starts: tuple[int, ...]
    context_tokens: tuple[int, ...]
    block_tables: tuple[tuple[int, ...], ...]
    rows_R: Tensor


class KvCache(Protocol):
    """Keys and values of all layers in blocks; a quantised cache stores fewer bits behind the same face.

    ``write`` then ``read`` in each layer: within a step every sequence's new tokens are written before any is read,
    so a sequence may read a prefix that another computes in the same step.
    """

    @property
    def block_tokens(self) -> int:
        """Tokens a block."""
        ...

    @property
    def blocks(self) -> int:
        """Blocks in all."""
        ...

    def write(self, layer: int, slots_T: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values, (T, kv_heads, head_dim) each, of the new tokens."""
        ...

    def read(self, layer: int, block_table: tuple[int, ...], tokens: int) -> tuple[Tensor, Tensor]:
        """Keys and values, (tokens, kv_heads, head_dim) each, of one sequence."""
        ...


class Model(Protocol):
    """A network that computes steps: the decoder, or a quantised, shortened or tensor-parallel one."""

    @property
    def config(self) -> DecoderConfig:
        """Sizes and switches."""
        ...

    def new_cache(self, blocks: int, block_tokens: int = 16) -> KvCache:
        """An empty cache that suits the model (dtype, device, its own share of the heads)."""
        ...

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        """Logits, (R, V) in float32 (float64 where the model computes in it); the cache holds the new tokens then."""
        ...
