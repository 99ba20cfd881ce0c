"""The paged cache in the order that the compiled attention reads.

Legend: T tokens, P blocks of the pool, B blocks of a table, K KV heads, D head size, G groups of 16 tokens in a block.
"""

from __future__ import annotations

import torch
from torch import Tensor

from servewise.engine.compiled.arena import Arena
from servewise.engine.compiled.structures import CacheStructure
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError

GROUP = 16


class PackedCache:
    """``blocks`` blocks of ``block_tokens`` tokens a layer, in bfloat16; it satisfies the ``KvCache`` seam.

    Keys are (P, K, G, D / 2, 16, 2): value pair by value pair, those of 16 tokens side by side. Values are
    (P, K, G, 8, D, 2): token pair by token pair. A block of 16, 32 ... tokens wastes nothing. Blocks start as zeros and
    are not cleared when they change hands; only not-a-number outlives a mask and needs ``clear``.
    """

    def __init__(self, config: DecoderConfig, blocks: int, block_tokens: int = 16) -> None:
        if blocks < 1 or block_tokens < 1:
            raise InputError(f"a cache of {blocks} blocks of {block_tokens} tokens holds nothing")
        self._blocks, self._block_tokens = blocks, block_tokens
        arena, heads, groups, size = Arena(), config.kv_heads, -(-block_tokens // GROUP), config.head_dim

        def pools(*group: int) -> list[Tensor]:
            shape = (blocks, heads, groups, *group)
            return [arena.zeros(*shape, dtype=torch.bfloat16) for _ in range(config.layers)]

        try:
            self._keys, self._values = pools(size // 2, GROUP, 2), pools(GROUP // 2, size, 2)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"no memory for {blocks} KV blocks of {block_tokens} tokens", hint="ask for fewer blocks"
            ) from error
        layers = zip(self._keys, self._values, strict=True)
        pointers = [CacheStructure(keys.data_ptr(), values.data_ptr()) for keys, values in layers]
        self.structures = (CacheStructure * config.layers)(*pointers)

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

    def write(self, layer: int, slots_T: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store (T, K, D) keys and values in their slots."""
        block_T, offset_T = slots_T // self._block_tokens, slots_T % self._block_tokens
        group_T, place_T = offset_T // GROUP, offset_T % GROUP
        dtype = torch.bfloat16
        self._keys[layer][block_T, :, group_T, :, place_T] = keys.to(dtype).view(*keys.shape[:2], -1, 2)
        self._values[layer][block_T, :, group_T, place_T // 2, :, place_T % 2] = values.to(dtype)

    def read(self, layer: int, block_table: tuple[int, ...], tokens: int) -> tuple[Tensor, Tensor]:
        """(tokens, K, D) keys and values of one sequence."""
        used_B = torch.tensor(block_table[: -(-tokens // self._block_tokens)])
        keys = self._keys[layer][used_B].permute(0, 2, 4, 1, 3, 5).flatten(4)  # B G 16 K D
        values = self._values[layer][used_B].permute(0, 2, 3, 5, 1, 4).flatten(2, 3)
        return self._in_a_row(keys)[:tokens], self._in_a_row(values)[:tokens]

    def _in_a_row(self, parts_BGTKD: Tensor) -> Tensor:
        return parts_BGTKD.flatten(1, 2)[:, : self._block_tokens].flatten(0, 1)

    def copy(self, source: int, target: int) -> None:
        """Copy one block of every layer to another."""
        for pool in (*self._keys, *self._values):
            pool[target] = pool[source]

    def clear(self, blocks: tuple[int, ...]) -> None:
        """Zero these blocks: needed once they hold values that are not numbers."""
        index = torch.tensor(blocks, dtype=torch.long)
        for pool in (*self._keys, *self._values):
            pool.index_fill_(0, index, 0)
