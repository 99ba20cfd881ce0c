"""The prefix cache as a state machine, beside a ledger of what was computed, who holds it, and when it was last used.

The rules are vLLM's (vllm/v1/core/block_pool.py and kv_cache_manager.py, v0.19): a full block can be found once its
tokens are computed, by whoever has the same tokens before and in it; a hit takes the longest cached prefix and leaves
at least one token to compute; a block that anyone holds is never evicted; of the others goes first what was released
first, and of one release the end of the text before its beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties.machines.texts import WORDS, chained

from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence

BLOCK = 4


@dataclass
class Entry:
    """A named block in the cache: how deep in its text, when it was last released, how many hold it."""

    depth: int
    released: int
    holders: int


def tellable(sequence: Sequence) -> int:
    """Computed tokens that have names: those of an answer only where its text is known."""
    computed = sequence.computed_tokens
    return computed if sequence.answer_hashed else min(computed, sequence.prompt_tokens)


class PrefixCacheMachine(RuleBasedStateMachine):
    """Prompts that go on after earlier texts come, are computed in parts, answer, and end or are cancelled."""

    @initialize(total=st.integers(3, 20))
    def begin(self, total: int) -> None:
        self.pool = BlockPool(total, BLOCK, BLOCK)
        self.cache: dict[int, Entry] = {}
        self.gone: set[int] = set()  # evicted, and not computed again since
        self.running: dict[int, Sequence] = {}
        self.clock = self.serial = 0
        self.hit_tokens = self.cached_tokens = 0
        self.texts = [chained(())]

    def _longest(self, names: tuple[int, ...], tokens: int) -> int:
        found = 0
        for depth in range(1, (tokens - 1) // BLOCK + 1):
            if depth <= len(names) and all(name in self.cache for name in names[:depth]):
                found = depth
        return found

    def _evicted(self, needed: int, free: int, spared: tuple[int, ...]) -> None:
        """The ledger loses as many blocks as ``needed`` ones lack: of those that nobody holds, in the order due."""
        loose = [name for name, entry in self.cache.items() if not entry.holders and name not in spared]
        due = sorted(loose, key=lambda name: (self.cache[name].released, -self.cache[name].depth))
        for name in due[: max(0, needed - free)]:
            del self.cache[name]
            self.gone.add(name)

    @rule(data=st.data(), words=st.lists(st.integers(0, WORDS - 1), max_size=3), tail=st.integers(1, BLOCK))
    def ask(self, data: st.DataObject, words: list[int], tail: int) -> None:
        """A prompt that goes on after a text, or after its beginning: it hits the longest prefix there is."""
        base = self.texts[data.draw(st.integers(0, len(self.texts) - 1))]
        names = self._longer(base[: data.draw(st.integers(0, len(base)))], words)
        sequence = Sequence(self.serial, BLOCK * len(names) + tail - 1 or 1, 12, names)
        self.serial += 1
        hits = self._longest(names, sequence.prompt_tokens)
        tokens = data.draw(st.integers(hits * BLOCK + 1, sequence.prompt_tokens))
        needed = -(-tokens // BLOCK) - hits
        loose = sum(not entry.holders for name, entry in self.cache.items() if name not in names[:hits])
        fits, free = needed <= self.pool.free + loose, self.pool.free
        assert self.pool.admit(sequence, tokens) == fits
        if not fits:
            return
        assert self.gone.isdisjoint(names[:hits])
        for name in names[:hits]:
            self.cache[name].holders += 1
        self._evicted(needed, free, names[:hits])
        self.hit_tokens += hits * BLOCK
        self.cached_tokens += sequence.cached_tokens
        self.running[sequence.serial] = sequence

    def _longer(self, base: tuple[int, ...], words: list[int]) -> tuple[int, ...]:
        names = base
        for word in words:
            names = (*names, (names[-1] if names else 0) * (WORDS + 1) + word + 1)
        return names

    def _told(self, sequence: Sequence, before: int) -> None:
        """What ``sequence`` has computed since it held ``before`` named blocks is in the ledger."""
        told = (
            sequence.computed_tokens
            if sequence.answer_hashed
            else min(sequence.computed_tokens, sequence.prompt_tokens)
        )
        for depth, name in enumerate(sequence.block_hashes[: told // BLOCK]):
            if depth >= before:
                entry = self.cache.setdefault(name, Entry(depth, 0, 0))
                entry.holders += 1
                self.gone.discard(name)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), tokens=st.integers(1, 10))
    def compute(self, data: st.DataObject, tokens: int) -> None:
        """The next part of a prompt, or of an answer; its blocks are taken, its full ones can be found."""
        sequence = self.running[data.draw(st.sampled_from(sorted(self.running)))]
        after = min(sequence.computed_tokens + tokens, sequence.total_tokens - 1)
        if sequence.computed_tokens < sequence.prompt_tokens:
            after = min(after, sequence.prompt_tokens)
        needed = self.pool.private_blocks(sequence, after) - sequence.blocks
        if needed > self.pool.available:
            return
        if needed > 0:
            free = self.pool.free
            self.pool.take(needed)
            self._evicted(needed, free, ())
            sequence.blocks += needed
        sequence.computed_tokens = after
        if after <= sequence.prompt_tokens:
            before = sequence.shared
            self.pool.publish(sequence)
            self._told(sequence, before)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), words=st.lists(st.integers(0, WORDS - 1), max_size=3), known=st.booleans())
    def end(self, data: st.DataObject, words: list[int], known: bool) -> None:
        """An end or a cancel: what has a name stays in the cache, the answer's too where it has names."""
        sequence = self.running.pop(data.draw(st.sampled_from(sorted(self.running))))
        if known and sequence.prompt_tokens // BLOCK == len(sequence.block_hashes):
            sequence.block_hashes = self._longer(sequence.block_hashes, words)
            sequence.answer_hashed = True
        before = sequence.shared
        self._told(sequence, before)
        held = sequence.block_hashes
        self.pool.release(sequence)
        self.clock += 1
        for name in held:
            self._let_go(name, sequence, held)
        self.texts.append(held)

    def _let_go(self, name: int, sequence: Sequence, held: tuple[int, ...]) -> None:
        told = (
            sequence.computed_tokens
            if sequence.answer_hashed
            else min(sequence.computed_tokens, sequence.prompt_tokens)
        )
        depth = held.index(name)
        if depth < max(told // BLOCK, sequence.cached_tokens // BLOCK):
            entry = self.cache[name]
            entry.holders -= 1
            entry.released = self.clock

    @invariant()
    def the_ledger_is_the_cache(self) -> None:
        """Every text so far finds its longest prefix, nothing that went is found, no held block went."""
        for names in self.texts:
            probe = Sequence(-1, BLOCK * len(names) + 1, 1, names)
            assert self.pool.cached_prefix(probe) == self._longest(names, probe.prompt_tokens)
        assert self.gone.isdisjoint(self.cache)
        loose = sum(not entry.holders for entry in self.cache.values())
        assert self.pool.kept_blocks == loose
        private = sum(each.blocks for each in self.running.values())
        assert self.pool.free + len(self.cache) + private == self.pool.total

    @invariant()
    def hits_are_counted(self) -> None:
        """What the sequences were told to be cached is what the ledger says they hit."""
        assert self.hit_tokens == self.cached_tokens


TestPrefixCache: Any = PrefixCacheMachine.TestCase
TestPrefixCache.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
