"""Dense copies beside the blocks: always what the blocks hold, and not gathered anew."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.cache.test_paged import CONFIG

from servewise.engine.cache.paged import PagedCache
from servewise.engine.cache.view import Placement, capacity

BLOCK, BLOCKS = 4, 200


class Life:
    """Sequences that come, grow, roll back and go, over few blocks, so that they are soon used again."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cache = PagedCache(CONFIG, BLOCKS, BLOCK, dtype=torch.float64)
        self.free = list(range(BLOCKS))
        self.tables: dict[int, list[int]] = {}
        self.tokens: dict[int, int] = {}
        self.fresh = self.grown = 0

    def step(self) -> None:
        """Some sequences get one token, some a chunk; every copy must be what the blocks hold."""
        new: dict[int, int] = {}
        for s in [*self.tables, *(max([*self.tables, 0]) + each for each in range(1, self.rng.randint(1, 3)))]:
            count = self.rng.choice((1, 1, 1, 1, 1, 2, 30)) if s in self.tables else self.rng.randint(1, 90)
            if self.rng.random() < 0.9 and self._grow(s, count):
                new[s] = count
        self._compute(new)

    def _grow(self, s: int, count: int) -> bool:
        end = self.tokens.get(s, 0) + count
        table = self.tables.get(s, [])
        missing = -(-end // BLOCK) - len(table)
        if missing > len(self.free) or end > 250:
            return False
        self.tables[s] = table + [self.free.pop() for _ in range(missing)]
        self.tokens[s] = end
        return True

    def _compute(self, new: dict[int, int]) -> None:
        written: set[int] = set()
        slots: list[int] = []
        likes: dict[int, list[int]] = {}
        for s, count in new.items():
            end, table = self.tokens[s], self.tables[s]
            slots += [table[i // BLOCK] * BLOCK + i % BLOCK for i in range(end - count, end)]
            written.update(table[(end - count) // BLOCK : -(-end // BLOCK)])
            if count == 1:
                likes.setdefault(capacity(end), []).append(s)
        asked = [([tuple(self.tables[s]) for s in g], [self.tokens[s] for s in g]) for g in likes.values()]
        placed = self.cache.place(asked, written)
        for layer in range(2):
            keys = torch.randn(len(slots), 2, 4, dtype=torch.float64)
            self.cache.write(layer, torch.tensor(slots, dtype=torch.long), keys, -keys)
            for place, group in zip(placed, likes.values(), strict=True):
                if place is not None:
                    self._compare(layer, place, group)

    def _compare(self, layer: int, place: Placement, group: list[int]) -> None:
        both = self.cache.read_placed(layer, place)
        assert sorted(place.order) == list(range(len(group)))
        for row, s in enumerate(place.order):
            wanted = self.cache.read(layer, tuple(self.tables[group[s]]), self.tokens[group[s]])
            for got, want in zip(both, wanted, strict=True):
                assert got[row, : len(want)].equal(want)
        self.fresh += len(place.fresh_F)
        self.grown += len(place.slots_G)

    def disturb(self) -> None:
        """Sequences end, roll back, or their blocks are written or cleared by someone else."""
        what = self.rng.random()
        if not self.tables or what < 0.5:
            return
        s = self.rng.choice(list(self.tables))
        if what < 0.7:
            self.free = self.tables.pop(s)[::-1] + self.free  # its blocks go to the next, in the same order
            del self.tokens[s]
            self.free.reverse()
        elif what < 0.9:
            self.tokens[s] = self.rng.randint(1, self.tokens[s])
        elif what < 0.95:
            self.cache.clear((self.tables[s][0],))
        else:
            slot = torch.tensor([self.tables[s][0] * BLOCK])
            self.cache.write(0, slot, torch.ones(1, 2, 4).double(), torch.ones(1, 2, 4).double())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_copies_are_what_the_blocks_hold(seed: int) -> None:
    """However sequences come, grow, roll back and go and blocks change hands: every copy is its sequence's tokens."""
    life = Life(seed)
    for _ in range(40):
        life.step()
        life.disturb()

    assert life.grown > life.fresh / 4, "copies were hardly used"


def test_steady_sequences_are_gathered_once() -> None:
    """Sequences that only decode are gathered at the first step and where they outgrow a shelf, then never again."""
    life = Life(0)
    for s in range(8):
        assert life._grow(s, 20)
    life._compute(dict.fromkeys(range(8), 20))
    for _ in range(50):
        for s in range(8):
            assert life._grow(s, 1)
        life._compute(dict.fromkeys(range(8), 1))

    assert (life.fresh, life.grown) == (2 * 8 * 2, 2 * 8 * 48)


def test_copies_keep_within_their_memory() -> None:
    """Copies that would take over twice the pool are not made; asked sequences are then to be gathered."""
    cache = PagedCache(CONFIG, 4, BLOCK)
    placed = cache.place([([(0, 1)] * 3, [8] * 3)], {1})

    assert placed == [None]
    assert cache.view_bytes <= 2 * cache.bytes
    assert PagedCache(CONFIG, 400, BLOCK, dense_view=False).place([([(0, 1)], [8])], {1}) == [None]


def test_shelves_are_two_thirds_full() -> None:
    """Each length from 64 on fits its shelf and fills at least two thirds of it."""
    for tokens in range(1, 5000):
        assert capacity(tokens) >= tokens
        assert tokens < 64 or tokens / capacity(tokens) > 2 / 3 - 1e-9
