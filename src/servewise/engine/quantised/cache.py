"""The quantised KV cache: the same blocks, fewer bits, packed at every width.

Legend: T tokens, K KV heads, D head size.

Reading expands a sequence's keys and values into the model's dtype: memory is saved, traffic is not on a CPU. Values
(and keys by token) depend on their token alone; keys by channel on the other tokens of their block, so that a prompt
computed in one chunk reads its earlier blocks rounded where token-by-token decoding would have read the last of them
as they are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from servewise.engine.config import DecoderConfig
from servewise.engine.quantised.channel_keys import ChannelKeys
from servewise.engine.quantised.scheme import KvScheme
from servewise.engine.quantised.token_rows import TokenRows
from servewise.errors import InputError

RECENT_BLOCKS = 64


class QuantisedCache:
    """``blocks`` blocks of ``block_tokens`` tokens a layer by ``scheme``; it satisfies the ``KvCache`` seam."""

    def __init__(
        self,
        config: DecoderConfig,
        scheme: KvScheme,
        blocks: int,
        block_tokens: int = 16,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        kv_heads: int | None = None,
        recent_blocks: int = RECENT_BLOCKS,
    ) -> None:
        if blocks < 1 or block_tokens < 1 or recent_blocks < 1:
            raise InputError(f"a cache of {blocks} blocks of {block_tokens} tokens holds nothing")
        self._blocks, self._block_tokens, self._device = blocks, block_tokens, torch.device(device)
        heads, size, layers = kv_heads or config.kv_heads, config.head_dim, range(config.layers)

        def rows() -> TokenRows:
            slots = blocks * block_tokens
            return TokenRows(scheme.along_channels, slots, heads, size, dtype=dtype, device=self._device)

        def by_channel() -> ChannelKeys:
            shape = (blocks, block_tokens, heads, size)
            return ChannelKeys(scheme.along_tokens, shape, recent_blocks, dtype=dtype, device=self._device)

        self._values = [rows() for _ in layers]
        self._channel_keys = [by_channel() for _ in layers] if scheme.keys == "channel" else []
        self._token_keys = [] if self._channel_keys else [rows() for _ in layers]

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
        """Bytes of all blocks, and of the recent blocks that keep their keys as they are."""
        rows = sum(each.bytes for each in (*self._values, *self._token_keys))
        return rows + sum(each.bytes for each in self._channel_keys)

    def write(self, layer: int, slots_T: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store (T, K, D) keys and values in their slots."""
        self._values[layer].write(slots_T, values)
        if self._channel_keys:
            self._channel_keys[layer].write(slots_T, keys)
        else:
            self._token_keys[layer].write(slots_T, keys)

    def read(self, layer: int, block_table: tuple[int, ...], tokens: int) -> tuple[Tensor, Tensor]:
        """(tokens, K, D) keys and values of one sequence, expanded."""
        slots_T = self._slots(block_table)[:tokens]
        values = self._values[layer].read(slots_T)
        if self._channel_keys:
            return self._channel_keys[layer].read(block_table, tokens), values
        return self._token_keys[layer].read(slots_T), values

    def copy(self, source: int, target: int) -> None:
        """Copy one block of every layer to another."""
        source_T, target_T = self._slots((source,)), self._slots((target,))
        for rows in (*self._values, *self._token_keys):
            rows.copy(source_T, target_T)
        for keys in self._channel_keys:
            keys.copy(source, target)

    def clear(self, blocks: tuple[int, ...]) -> None:
        """Zero these blocks: needed once they hold values that are not numbers."""
        for rows in (*self._values, *self._token_keys):
            rows.clear(self._slots(blocks))
        for keys in self._channel_keys:
            keys.clear(blocks)

    def _slots(self, blocks: tuple[int, ...]) -> Tensor:
        first = torch.tensor(blocks, device=self._device)[:, None] * self._block_tokens
        return (first + torch.arange(self._block_tokens, device=self._device)).flatten()
