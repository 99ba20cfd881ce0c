"""The block pool as a state machine, beside a pool of numbered blocks: whoever does what, both count alike."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties.machines.naive_pool import NaivePool
from tests.properties.machines.texts import paths

from servewise.batching.blockpool import BlockPool
from servewise.batching.retreat.swap import Swap
from servewise.batching.sequence import Sequence

BLOCK = 4
HOST_BLOCKS = 6


class BlockPoolMachine(RuleBasedStateMachine):
    """Sequences come, compute, grow, swap out and in, go; blocks are put by for others; names are distrusted.

    What must hold: no count below zero, no block with two owners, free + held + kept = total, admission exactly where
    numbered blocks say there is room, and what is kept, found and evicted is the same, name by name.
    """

    @initialize(total=st.integers(1, 24), name_blocks=st.sampled_from([1, 1, 2, 4]), cached=st.booleans())
    def begin(self, total: int, name_blocks: int, cached: bool) -> None:
        self.cached = cached
        self.pool = BlockPool(total, BLOCK, BLOCK * name_blocks if cached else None)
        self.model = NaivePool(total, BLOCK, name_blocks)
        self.running: list[Sequence] = []
        self.out: list[Sequence] = []  # swapped out
        self.host = Swap(HOST_BLOCKS, BLOCK)
        self.serial = 0

    def _draw(self, data: st.DataObject, among: list[Sequence]) -> Sequence:
        return among[data.draw(st.integers(0, len(among) - 1))]

    @rule(names=paths, more=st.integers(1, 9), answer=st.booleans(), data=st.data(), spare=st.integers(0, 3))
    def come(self, names: tuple[int, ...], more: int, answer: bool, data: st.DataObject, spare: int) -> None:
        """A sequence asks for the blocks of its prompt or of a first part; it gets them where there is room."""
        span = BLOCK * self.model.name_blocks
        prompt = max(1, len(names) * span - more + 1 if answer else len(names) * span + more)
        sequence = Sequence(self.serial, prompt, 40, names if self.cached else ())
        sequence.answer_hashed = answer
        self.serial += 1
        hits = self.model.match(sequence.block_hashes, prompt)
        assert self.pool.cached_prefix(sequence) == hits
        tokens = data.draw(st.integers(hits * span + 1, prompt))
        self._admit(sequence, tokens, spare)

    def _admit(self, sequence: Sequence, tokens: int, spare: int) -> bool:
        hits = self.model.match(sequence.block_hashes, sequence.target_tokens)
        fits = self.model.admit(sequence.serial, sequence.block_hashes, sequence.target_tokens, tokens, spare)
        before = self.pool.free, self.pool.kept_blocks
        assert self.pool.admit(sequence, tokens, spare) == fits
        if not fits:
            assert (self.pool.free, self.pool.kept_blocks) == before
            return False
        cached = hits * BLOCK * self.model.name_blocks
        assert sequence.computed_tokens == sequence.cached_tokens == cached
        assert self.pool.available >= spare
        self.running.append(sequence)
        return True

    def _nameable(self, sequence: Sequence) -> int:
        """Tokens whose names may be told: of an answer only where it has names."""
        computed = sequence.computed_tokens
        return computed if sequence.answer_hashed else min(computed, sequence.prompt_tokens)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), tokens=st.integers(1, 20))
    def compute(self, data: st.DataObject, tokens: int) -> None:
        """A sequence computes on, as far as its blocks go and no further than its end, and tells its names."""
        sequence = self._draw(data, self.running)
        room = BLOCK * (sequence.blocks + sequence.shared * self.model.name_blocks)
        sequence.computed_tokens = min(room, sequence.computed_tokens + tokens, sequence.total_tokens - 1)
        self.pool.publish(sequence)
        self.model.publish(sequence.serial, self._nameable(sequence))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), blocks=st.integers(1, 5))
    def grow(self, data: st.DataObject, blocks: int) -> None:
        """A sequence takes more blocks, where there are so many."""
        sequence = self._draw(data, self.running)
        assert self.pool.available == self.model.room()
        if blocks <= self.pool.available:
            self.pool.take(blocks)
            sequence.blocks += blocks
            self.model.holdings[sequence.serial].private += self.model.take(blocks)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        """A sequence is released: ended, cancelled, or sent back."""
        sequence = self._draw(data, self.running)
        self._release(sequence)
        assert sequence.blocks == sequence.shared == 0

    def _release(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.pool.release(sequence)
        self.model.publish(sequence.serial, self._nameable(sequence))
        self.model.release(sequence.serial)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), whole=st.booleans())
    def swap_out(self, data: st.DataObject, whole: bool) -> None:
        """A sequence gives its blocks back; its KV moves to the host where it is whole and has room there."""
        sequence = self._draw(data, self.running)
        tokens, free = sequence.computed_tokens, self.host.free
        sequence.generated = max(1, tokens + 1 - sequence.prompt_tokens) if whole else 0
        self._release(sequence)
        moved = self.host.leave(sequence, whole=whole)
        fits = whole and -(-tokens // BLOCK) <= free
        assert moved == sequence.stored_tokens == (tokens if fits else 0)
        assert sequence.computed_tokens == 0
        self.out.append(sequence)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def swap_in(self, data: st.DataObject) -> None:
        """One that is out asks for blocks for all that it has; in, its room on the host is free."""
        sequence = self._draw(data, self.out)
        tokens = sequence.stored_tokens or sequence.target_tokens
        if self._admit(sequence, tokens, 0):
            self.out.remove(sequence)
            sequence.stored_tokens = 0
            self.host.done(sequence)

    @rule(blocks=st.integers(1, 6))
    def put_by(self, blocks: int) -> None:
        """Blocks are put by for a batch that is under way elsewhere."""
        if blocks <= self.pool.available:
            self.pool.take(blocks)
            self.model.aside += self.model.take(blocks)

    @precondition(lambda self: self.model.aside)
    @rule()
    def give_back(self) -> None:
        """What was put by is there again."""
        self.pool.free += len(self.model.aside)
        self.model.free += self.model.aside
        self.model.aside = []

    @rule(blocks=st.integers(0, 6))
    def make_free(self, blocks: int) -> None:
        """Room is made ahead: only kept blocks go, and only as many names as it takes."""
        if blocks <= self.pool.available:
            self.pool.make_free(blocks)
            self.model.make_free(blocks)
            assert self.pool.free >= blocks

    @rule(names=paths)
    def distrust(self, names: tuple[int, ...]) -> None:
        """Names are forgotten where nobody holds them."""
        self.pool.discard(names)
        self.model.discard(names)

    @invariant()
    def both_count_alike(self) -> None:
        """Free, kept and held, in all and for each sequence; the names, and their order of eviction."""
        pool, model = self.pool, self.model
        model.check()
        assert (pool.free, pool.available) == (len(model.free), model.room())
        assert list(pool._kept) == model.used
        assert pool._holders == {name: len(model.owners(name)) for name in model.copies if model.owners(name)}
        for sequence in self.running:
            held = model.holdings[sequence.serial]
            assert (sequence.shared, sequence.blocks) == (held.shared, len(held.private))
        held_blocks = sum(each.blocks for each in self.running) + model.name_blocks * len(pool._holders)
        assert pool.free + pool.kept_blocks + held_blocks + len(model.aside) == pool.total
        assert min(pool.free, pool.kept_blocks, self.host.free) >= 0

    @invariant()
    def the_host_holds_what_is_out(self) -> None:
        """Each swapped sequence has its blocks there, and nobody else."""
        assert self.host.free == HOST_BLOCKS - sum(-(-each.stored_tokens // BLOCK) for each in self.out)

    def teardown(self) -> None:
        """All go: nothing is left behind."""
        if not hasattr(self, "pool"):
            return
        for sequence in list(self.running):
            self._release(sequence)
        self.pool.free += len(self.model.aside)
        assert self.pool.available == self.pool.total


TestBlockPool: Any = BlockPoolMachine.TestCase
TestBlockPool.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
