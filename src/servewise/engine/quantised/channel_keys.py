"""Keys with steps by channel, shared by the tokens of a block (KIVI, Liu et al. 2024, section 3).

Legend: B blocks, C tokens a block, K KV heads, D head size, W packed bytes, R recent blocks, T tokens.

Why by channel: a few channels of the keys are large in every token, so that steps by token would spend all their range
on those. A block can be rounded only once its tokens are there, so a sequence's last block stays as it is ("recent",
KIVI's residual); a block is rounded when some sequence reads past it. At most ``recent`` blocks stay so; the one not
written for longest is rounded to make room, and restored from its rounded form if its sequence goes on.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor

from servewise.engine.quantised.bit_packing import pack, packed_bytes, unpack
from servewise.engine.quantised.grid import SCALES, Grid, Steps, decode, encode, steps_of


class ChannelKeys:
    """One layer's keys: rounded blocks, and those of the recent ones that are not rounded yet."""

    def __init__(
        self,
        grid: Grid,
        shape: tuple[int, int, int, int],
        recent: int,
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        blocks, tokens, heads, size = shape
        self._grid, self._tokens, self._size, self._dtype = grid, tokens, size, dtype
        width = packed_bytes(size, grid.bits)
        self._codes_BCKW = torch.zeros(blocks, tokens, heads, width, dtype=torch.uint8, device=device)
        steps = 1 if grid.symmetric else 2
        self._steps_BSKD = torch.zeros(blocks, steps, heads, size, dtype=SCALES[grid.scales], device=device)
        self._recent_RCKD = torch.zeros(min(recent, blocks), tokens, heads, size, dtype=dtype, device=device)
        self._places: OrderedDict[int, int] = OrderedDict()  # block -> its place among the recent, oldest first
        self._filled: dict[int, int] = {}  # recent block -> tokens in it
        self._free = list(range(len(self._recent_RCKD)))

    @property
    def bytes(self) -> int:
        """Bytes of all blocks, the recent ones' copies included."""
        return self._codes_BCKW.nbytes + self._steps_BSKD.nbytes + self._recent_RCKD.nbytes

    def write(self, slots_T: Tensor, keys_TKD: Tensor) -> None:
        """Keep the keys of these slots, not rounded yet."""
        spans = _spans(slots_T.tolist(), self._tokens)
        for start in range(0, len(spans), len(self._recent_RCKD)):
            some = spans[start : start + len(self._recent_RCKD)]
            self._make_recent(some)
            for block, first, rows in some:
                self._recent_RCKD[self._places[block], first : first + len(rows)] = keys_TKD[rows]
                self._filled[block] = first + len(rows)

    def read(self, table: tuple[int, ...], tokens: int) -> Tensor:
        """(tokens, K, D) of one sequence; its blocks but the last are rounded from now on."""
        used = table[: -(-tokens // self._tokens)]
        self._round([block for block in used[:-1] if block in self._places])
        keys_BCKD = self._rounded(used)
        place = self._places.get(used[-1])
        if place is not None:
            keys_BCKD[-1] = self._recent_RCKD[place]
        return keys_BCKD.flatten(0, 1)[:tokens]

    def clear(self, blocks: tuple[int, ...]) -> None:
        """Zero these blocks."""
        for block in blocks:
            self._forget(block)
        self._codes_BCKW[list(blocks)] = 0
        self._steps_BSKD[list(blocks)] = 0

    def copy(self, source: int, target: int) -> None:
        """Copy a block; the copy is rounded where the source was."""
        self._forget(target)
        self._codes_BCKW[target] = self._codes_BCKW[source]
        self._steps_BSKD[target] = self._steps_BSKD[source]
        if source in self._places:
            self._make_recent([(target, 0, [])])
            if source in self._places:  # it may just have made room
                self._recent_RCKD[self._places[target]] = self._recent_RCKD[self._places[source]]
            else:
                self._recent_RCKD[self._places[target]] = self._rounded((source,))[0]
            self._filled[target] = self._filled.get(source, self._tokens)

    def _make_recent(self, spans: list[tuple[int, int, list[int]]]) -> None:
        for block, _, _ in spans:
            if block in self._places:
                self._places.move_to_end(block)
        new = [(block, first) for block, first, _ in spans if block not in self._places]
        oldest = list(self._places)[: max(0, len(new) - len(self._free))]
        self._round(oldest)
        for block, first in new:
            self._places[block] = place = self._free.pop()
            self._filled[block] = first
            if first:
                self._recent_RCKD[place] = self._rounded((block,))[0]

    def _round(self, blocks: list[int]) -> None:
        """Round recent blocks by channel over the tokens that are in them."""
        for filled in {self._filled[block] for block in blocks}:
            self._round_equal([block for block in blocks if self._filled[block] == filled], filled)
        for block in blocks:
            self._forget(block)

    def _round_equal(self, blocks: list[int], filled: int) -> None:
        if not filled:
            return
        places = [self._places[block] for block in blocks]
        keys_BKDC = self._recent_RCKD[places, :filled].permute(0, 2, 3, 1)
        steps = steps_of(keys_BKDC, self._grid)
        codes_BCKD = (encode(keys_BKDC, steps, self._grid) - self._grid.smallest).permute(0, 3, 1, 2)
        self._codes_BCKW[blocks, :filled] = pack(codes_BCKD, self._grid.bits)
        kept = (steps.scale,) if self._grid.symmetric else (steps.scale, steps.offset)
        self._steps_BSKD[blocks] = torch.stack(kept, 1).squeeze(-1).to(self._steps_BSKD.dtype)

    def _rounded(self, blocks: tuple[int, ...]) -> Tensor:
        """(B, C, K, D) of blocks as they are kept."""
        index = torch.tensor(blocks, device=self._codes_BCKW.device)
        codes = unpack(self._codes_BCKW[index], self._grid.bits, self._size).to(self._dtype) + self._grid.smallest
        kept = self._steps_BSKD[index].to(self._dtype)
        offset = torch.zeros_like(kept[:, :1]) if self._grid.symmetric else kept[:, 1:]
        return decode(codes, Steps(kept[:, :1], offset), self._grid)

    def _forget(self, block: int) -> None:
        if block in self._places:
            self._free.append(self._places.pop(block))
            del self._filled[block]


def _spans(slots: list[int], tokens: int) -> list[tuple[int, int, list[int]]]:
    """Slots as runs within a block: (block, first offset, rows of the slots); a sequence's slots come in order."""
    runs: dict[int, tuple[int, list[int]]] = {}
    for row, slot in enumerate(slots):
        block, offset = divmod(slot, tokens)
        runs.setdefault(block, (offset, []))[1].append(row)
    return [(block, first, rows) for block, (first, rows) in runs.items()]
