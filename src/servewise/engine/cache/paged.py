"""The plain paged cache: every layer's keys and values in blocks, in the model's own dtype.

Legend: T new tokens, S sequences, B blocks of a table, K KV heads, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from servewise.engine.cache.view import Decoding, DenseView, Placement
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError


class PagedCache:
    """``blocks`` blocks of ``block_tokens`` tokens a layer, for keys and values alike.

    Blocks start as zeros and are never cleared when they change hands: what lies behind a sequence's last token is
    masked. Only not-a-number outlives a mask, so a sequence with such logits must be ``clear``-ed before its blocks go
    to another. On a CPU decoding sequences have dense copies beside the blocks (``DenseView``), which take at most
    twice the blocks' memory and 1 GiB; ``dense_view=False`` does without.
    """

    def __init__(
        self,
        config: DecoderConfig,
        blocks: int,
        block_tokens: int = 16,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        kv_heads: int | None = None,
        dense_view: bool = True,
    ) -> None:
        if blocks < 1 or block_tokens < 1:
            raise InputError(f"a cache of {blocks} blocks of {block_tokens} tokens holds nothing")
        self._blocks, self._block_tokens = blocks, block_tokens
        shape = (blocks, block_tokens, kv_heads or config.kv_heads, config.head_dim)
        try:
            self._keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.layers)]
            self._values = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.layers)]
        except RuntimeError as error:
            raise InputError(
                f"no memory for {blocks} KV blocks of {block_tokens} tokens", hint="ask for fewer blocks"
            ) from error
        self._view = DenseView(self._keys, self._values) if dense_view and self._keys[0].device.type == "cpu" else None
        self._writes = self._expected_writes = 0

    @property
    def block_tokens(self) -> int:
        """Tokens a block."""
        return self._block_tokens

    @property
    def blocks(self) -> int:
        """Blocks in all."""
        return self._blocks

    @property
    def bytes(self) -> int:
        """Bytes of all blocks."""
        return sum(each.nbytes for each in (*self._keys, *self._values))

    @property
    def view_bytes(self) -> int:
        """Bytes of the dense copies beside them."""
        return self._view.bytes if self._view is not None else 0

    def place(self, decoding: Sequence[Decoding], written: set[int]) -> list[Placement | None]:
        """Begin a step that writes once a layer, into the blocks ``written``: dense copies for its decoding sequences.

        Each of ``decoding`` is sequences of one ``capacity``: their tables and contexts, one new token included in
        each. None: they are to be gathered.
        """
        if self._view is None:
            return [None] * len(decoding)
        if self._writes != self._expected_writes:
            self._view.forget()
        self._expected_writes = self._writes + len(self._keys)
        return self._view.place(decoding, written)

    def read_placed(self, layer: int, placed: Placement) -> tuple[Tensor, Tensor]:
        """(S, N, K, D) keys and values of placed sequences, N the longest context; the layer has been written."""
        assert self._view is not None
        return self._view.read(layer, placed)

    def write(self, layer: int, slots_T: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store (T, K, D) keys and values in their slots."""
        self._writes += 1
        self._keys[layer].flatten(0, 1).index_copy_(0, slots_T, keys)
        self._values[layer].flatten(0, 1).index_copy_(0, slots_T, values)

    def read(self, layer: int, block_table: tuple[int, ...], tokens: int) -> tuple[Tensor, Tensor]:
        """(tokens, K, D) keys and values of one sequence."""
        used = block_table[: -(-tokens // self._block_tokens)]
        table_1B = torch.tensor([used], device=self._keys[layer].device)
        keys, values = self.read_padded(layer, table_1B)
        return keys[0, :tokens], values[0, :tokens]

    def read_padded(self, layer: int, tables_SB: Tensor) -> tuple[Tensor, Tensor]:
        """(S, B x block_tokens, K, D) keys and values of several sequences."""
        shape = (len(tables_SB), -1, *self._keys[layer].shape[2:])
        index = tables_SB.flatten()
        return self._keys[layer].index_select(0, index).view(shape), self._values[layer].index_select(0, index).view(
            shape
        )

    def copy(self, source: int, target: int) -> None:
        """Copy one block of every layer to another (a shared block that a sequence is about to write into)."""
        self._writes += 1
        for pool in (*self._keys, *self._values):
            pool[target] = pool[source]

    def clear(self, blocks: tuple[int, ...]) -> None:
        """Zero these blocks: needed once they hold values that are not numbers."""
        self._writes += 1
        index = torch.tensor(blocks, device=self._keys[0].device, dtype=torch.long)
        for pool in (*self._keys, *self._values):
            pool.index_fill_(0, index, 0)
