"""Dense copies of the decoding sequences' keys and values, kept from step to step so that none is gathered twice.

Fused attention wants one sequence's keys in a row; blocks lie anywhere. Gathering them costs as much as attention
itself when many sequences decode, and all but one token of each is what was gathered a step ago. So a copy stays: each
step adds a token a sequence, and only sequences that are new, or grew into a longer shelf, are gathered. The blocks
remain the truth: a copy is used only while no block of it was written by another hand.

Legend: S sequences, F fresh and G grown ones among them, N tokens of a shelf, B blocks of a table, K KV heads,
D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

Decoding = tuple[list[tuple[int, ...]], list[int]]
"""Sequences' block tables and context tokens."""

SHORTEST = 64
MOST_BYTES = 2**30


def capacity(tokens: int) -> int:
    """The shelf for a sequence of that many tokens: 64, 96, 128, 192, 256 ..., so that two thirds of it are filled.

    >>> [capacity(tokens) for tokens in (1, 64, 65, 97, 129)]
    [64, 64, 96, 128, 192]
    """
    power = max(SHORTEST, 1 << (tokens - 1).bit_length())
    between = power * 3 // 4
    return between if power > SHORTEST and tokens <= between else power


@dataclass(frozen=True, slots=True)
class Row:
    """Whose copy a row is: the sequence's blocks and how many tokens of it are there."""

    table: tuple[int, ...]
    tokens: int


@dataclass(slots=True)
class Shelf:
    """Rows of one length; ``keys`` and ``values`` are (rows, K, N, D) a layer, each head's tokens side by side.

    Row i holds the sequence ``rows[i]``.
    """

    keys: list[Tensor]
    values: list[Tensor]
    rows: list[Row | None] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Bytes of the copies."""
        return sum(each.nbytes for each in (*self.keys, *self.values))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a group's sequences stand this step: sequence ``order[i]`` in row i of ``shelf``.

    ``fresh_F`` rows are gathered from ``tables_FB``, the others get their newest token from ``slots_G`` of the pool:
    its heads go to ``places`` of the shelf, counted in rows of D.
    """

    shelf: Shelf
    order: list[int]
    fresh_F: Tensor
    tables_FB: Tensor
    slots_G: Tensor
    places: Tensor
    longest: int


class DenseView:
    """The shelves beside a pool of blocks; never more than twice the pool or ``MOST_BYTES``."""

    def __init__(self, keys: list[Tensor], values: list[Tensor]) -> None:
        self._pool = (keys, values)
        self._block_tokens = keys[0].shape[1]
        self._most_bytes = min(MOST_BYTES, 2 * sum(each.nbytes for each in (*keys, *values)))
        self._shelves: dict[int, Shelf] = {}

    @property
    def bytes(self) -> int:
        """Bytes of all copies."""
        return sum(shelf.bytes for shelf in self._shelves.values())

    def forget(self) -> None:
        """Trust no copy any more."""
        for shelf in self._shelves.values():
            shelf.rows = [None] * len(shelf.rows)

    def place(self, decoding: Sequence[Decoding], written: set[int]) -> list[Placement | None]:
        """Rows for a step's decoding sequences, one list of them a capacity; None: copies would take too much memory.

        No copy of a block in ``written``, which the step writes, is trusted any more but those placed now.
        """
        busy = {capacity(max(contexts)) for _, contexts in decoding}
        placed = [self._place(tables, contexts, busy) for tables, contexts in decoding]
        for size, shelf in self._shelves.items():
            if size not in busy:
                shelf.rows = [row if row is not None and written.isdisjoint(row.table) else None for row in shelf.rows]
        return placed

    def _place(self, tables: list[tuple[int, ...]], contexts: list[int], busy: set[int]) -> Placement | None:
        size = capacity(max(contexts))
        shelf = self._shelf(size, len(tables), busy)
        if shelf is None:
            return None
        order, fresh = self._matched(shelf, tables, contexts)
        grown = [row for row in range(len(order)) if row not in fresh]
        shelf.rows[: len(order)] = [Row(tables[s], contexts[s]) for s in order]
        shelf.rows[len(order) :] = [None] * (len(shelf.rows) - len(order))
        return self._placement(shelf, size, order, sorted(fresh), grown)

    def read(self, layer: int, placed: Placement) -> tuple[Tensor, Tensor]:
        """(S, longest, K, D) keys and values of the placed sequences; the step's own tokens are in the pool by now."""
        return self._side(0, layer, placed), self._side(1, layer, placed)

    def _side(self, side: int, layer: int, placed: Placement) -> Tensor:
        pool = self._pool[side][layer]
        copy = (placed.shelf.keys, placed.shelf.values)[side][layer]
        if len(placed.slots_G):
            newest = pool.flatten(0, 1).index_select(0, placed.slots_G)
            copy.flatten(0, 2).index_copy_(0, placed.places, newest.flatten(0, 1))
        if len(placed.fresh_F):
            gathered = pool.index_select(0, placed.tables_FB.flatten()).view(len(placed.fresh_F), -1, *pool.shape[2:])
            copy[placed.fresh_F, :, : placed.longest] = gathered[:, : placed.longest].transpose(1, 2)
            copy[placed.fresh_F, :, placed.longest :] = 0  # what the row's last sequence left might be no number
        return copy[: len(placed.order), :, : placed.longest].transpose(1, 2)

    def _shelf(self, size: int, rows: int, busy: set[int]) -> Shelf | None:
        shelf = self._shelves.get(size)
        if shelf is not None and len(shelf.rows) >= rows:
            return shelf
        room = max(rows, 3 * len(shelf.rows) // 2 if shelf is not None else 0)
        keys, values = self._pool
        needed = room * size * keys[0][0, 0].nbytes * 2 * len(keys)
        self._shelves.pop(size, None)
        if needed + self.bytes > self._most_bytes:
            self._shelves = {each: held for each, held in self._shelves.items() if each in busy}
        if needed + self.bytes > self._most_bytes:
            return None
        made = [[each.new_zeros(room, each.shape[2], size, each.shape[3]) for each in side] for side in (keys, values)]
        shelf = self._shelves[size] = Shelf(made[0], made[1], [None] * room)
        return shelf

    def _matched(self, shelf: Shelf, tables: list[tuple[int, ...]], contexts: list[int]) -> tuple[list[int], set[int]]:
        """The sequences in the order of their rows, and the rows that must be gathered."""
        size, count = self._block_tokens, len(tables)
        rows = {row.table[(row.tokens - 1) // size]: i for i, row in enumerate(shelf.rows[:count]) if row is not None}
        order: list[int | None] = [None] * count
        left = []
        for s, (table, context) in enumerate(zip(tables, contexts, strict=True)):
            old = context - 1
            place = rows.pop(table[(old - 1) // size], None) if old else None
            if place is not None and _holds(shelf.rows[place], table, old, size):
                order[place] = s
            else:
                left.append(s)
        fresh = {place for place, s in enumerate(order) if s is None}
        waiting = iter(left)
        return [next(waiting) if s is None else s for s in order], fresh

    def _placement(self, shelf: Shelf, size: int, order: list[int], fresh: list[int], grown: list[int]) -> Placement:
        tokens, device = self._block_tokens, self._pool[0][0].device
        rows = [row for row in shelf.rows[: len(order)] if row is not None]
        longest = max(row.tokens for row in rows)
        blocks = -(-longest // tokens)
        ends = [(row, rows[row].tokens - 1) for row in grown]
        heads = self._pool[0][0].shape[2]
        return Placement(
            shelf=shelf,
            order=order,
            fresh_F=torch.tensor(fresh, dtype=torch.long, device=device),
            tables_FB=torch.tensor([padded(rows[row].table, blocks) for row in fresh], dtype=torch.long, device=device),
            slots_G=torch.tensor(
                [rows[row].table[end // tokens] * tokens + end % tokens for row, end in ends],
                dtype=torch.long,
                device=device,
            ),
            places=torch.tensor(
                [(row * heads + head) * size + end for row, end in ends for head in range(heads)],
                dtype=torch.long,
                device=device,
            ),
            longest=longest,
        )


def _holds(row: Row | None, table: tuple[int, ...], tokens: int, block_tokens: int) -> bool:
    blocks = -(-tokens // block_tokens)
    return row is not None and row.tokens >= tokens and row.table[:blocks] == table[:blocks]


def padded(table: tuple[int, ...], blocks: int) -> tuple[int, ...]:
    """The table cut or lengthened to ``blocks``, with its own first block: what stands there is masked."""
    return (*table[:blocks], *(table[:1] * (blocks - len(table))))
