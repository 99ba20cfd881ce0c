"""The pool's prefix cache held against naive models of vLLM's and SGLang's: hits, admissions and evictions, exactly."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous
from servewise.batching.sequence import Sequence
from servewise.records.columns import COMPLETED
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.workload.request import Request

BLOCK = 4


@dataclass
class FreeQueue:
    """vLLM v1's pool with numbered blocks: a queue of free ones, and a map from hash to block.

    vllm/v1/core/block_pool.py: ``get_new_blocks`` pops the front and forgets its hash, ``touch`` takes a hit out of the
    queue, ``free_blocks`` puts blocks without a hash in front and the others at the end, tail first.
    """

    total: int
    queue: list[int] = field(default_factory=list)
    hash_of: dict[int, int] = field(default_factory=dict)
    block_of: dict[int, int] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queue = list(range(self.total))

    def hits(self, hashes: tuple[int, ...], tokens: int) -> list[int]:
        """The blocks of the longest cached prefix, the last token left out."""
        found = []
        for key in hashes[: (tokens - 1) // BLOCK]:
            if key not in self.block_of:
                break
            found.append(self.block_of[key])
        return found

    def allocate(self, hashes: tuple[int, ...], tokens: int) -> list[int] | None:
        """A request's block table, or None where there are not enough."""
        table = self.hits(hashes, tokens)
        new = -(-tokens // BLOCK) - len(table)
        if new > len(self.queue) - sum(not self.uses.get(block) for block in table):
            return None
        for block in table:
            if not self.uses.get(block):
                self.queue.remove(block)
            self.uses[block] = self.uses.get(block, 0) + 1
        return table + self.grow(new)

    def grow(self, count: int) -> list[int]:
        """So many blocks from the front."""
        taken, self.queue = self.queue[:count], self.queue[count:]
        for block in taken:
            if block in self.hash_of:
                del self.block_of[self.hash_of.pop(block)]
            self.uses[block] = 1
        return taken

    def fill(self, table: list[int], hashes: tuple[int, ...], tokens: int) -> None:
        """Name the full blocks."""
        for block, key in zip(table[: tokens // BLOCK], hashes, strict=False):
            if block not in self.hash_of:
                self.hash_of[block], self.block_of[key] = key, block

    def free(self, table: list[int]) -> None:
        """Give a request's blocks back."""
        gone = []
        for block in reversed(table):
            self.uses[block] -= 1
            if not self.uses[block]:
                gone.append(block)
        self.queue = [b for b in gone if b not in self.hash_of] + self.queue + [b for b in gone if b in self.hash_of]

    def kept(self) -> set[int]:
        """Hashes that may be evicted."""
        return {self.hash_of[block] for block in self.queue if block in self.hash_of}


@dataclass
class Tree:
    """SGLang's radix cache, a node for each block: of the leaves that nobody holds, the one used longest ago goes."""

    parent: dict[int, int | None] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=dict)
    clock: int = 0

    def insert(self, hashes: tuple[int, ...]) -> None:
        """A request ended: its blocks are in the tree, all used now."""
        self.clock += 1
        for before, key in zip((None, *hashes), hashes, strict=False):
            self.parent.setdefault(key, before)
            self.used[key] = self.clock

    def evict(self) -> int:
        """The next block to go."""
        parents = {self.parent[key] for key in self.parent}
        leaves = [key for key in self.parent if key not in parents and not self.held.get(key)]
        victim = min(leaves, key=lambda key: self.used[key])
        del self.parent[victim]
        return victim


@dataclass
class Talk:
    """A text so far, as the chained names of its whole blocks and its length; names are made as text is."""

    tokens: int = 0
    hashes: tuple[int, ...] = ()


class Names:
    """New names for new text."""

    def __init__(self) -> None:
        self.last = 0

    def longer(self, talk: Talk, more: int) -> Talk:
        """``talk`` with ``more`` tokens that nobody said before; a block begun before them is another than it was."""
        tokens = talk.tokens + more
        new = range(self.last, self.last + tokens // BLOCK - talk.tokens // BLOCK)
        self.last += len(new)
        return Talk(tokens, talk.hashes + tuple(new))


@settings(max_examples=300, deadline=None)
@given(st.integers(4, 24), st.data())
def test_the_pool_is_vllms_queue_and_sglangs_tree(total: int, data: st.DataObject) -> None:
    """Hits, refusals, what is kept and in which order it goes, under random requests, answers and continued texts.

    No prompt is a whole number of blocks and no two sequences generate the same, so that vLLM keeps no second copies.
    """
    pool, queue, tree, names = BlockPool(total, BLOCK, BLOCK), FreeQueue(total), Tree(), Names()
    ended: list[Talk] = [Talk()]
    running: list[tuple[Sequence, Talk, list[int]]] = []
    for serial in range(data.draw(st.integers(1, 40))):
        if data.draw(st.booleans()) and running:
            sequence, said, table = running.pop(data.draw(st.integers(0, len(running) - 1)))
            answered = names.longer(said, data.draw(st.integers(1, 9)))
            computed = answered.tokens - 1
            need = -(-computed // BLOCK) - len(table)
            if need > pool.available:
                running.append((sequence, said, table))
                continue
            _evict_to(tree, pool, need)
            sequence.block_hashes, sequence.computed_tokens = answered.hashes, computed
            pool.take(need)
            sequence.blocks += need
            table += queue.grow(need)
            queue.fill(table, answered.hashes, computed)
            pool.release(sequence)
            queue.free(table)
            whole = answered.hashes[: computed // BLOCK]
            tree.insert(whole)
            for key in said.hashes:
                tree.held[key] -= 1
            ended.append(answered)
        else:
            before = data.draw(st.sampled_from(ended))
            cut = data.draw(st.integers(0, len(before.hashes)))  # an earlier text up to there, or all of it
            base = before if data.draw(st.booleans()) else Talk(cut * BLOCK, before.hashes[:cut])
            said = names.longer(base, data.draw(st.integers(1, 12)))
            said = names.longer(said, 1) if said.tokens % BLOCK == 0 else said
            sequence = Sequence(serial, said.tokens, 10, said.hashes)
            sequence.answer_hashed = True
            held = {key for other, _, _ in running for key in other.block_hashes}
            hits = pool.cached_prefix(sequence)
            assert hits == len(queue.hits(said.hashes, said.tokens))
            revived = sum(key not in held for key in said.hashes[:hits])
            need = -(-said.tokens // BLOCK) - hits
            fits = need <= pool.available - revived
            if fits:
                for key in said.hashes[:hits]:
                    tree.held[key] = tree.held.get(key, 0) + 1
                _evict_to(tree, pool, need)
                for key in said.hashes[:hits]:
                    tree.held[key] -= 1
            fresh = queue.allocate(said.hashes, said.tokens)
            assert pool.admit(sequence, said.tokens) == fits == (fresh is not None)
            if fresh is None:
                continue
            assert sequence.cached_tokens == hits * BLOCK
            sequence.computed_tokens = said.tokens
            pool.publish(sequence)
            queue.fill(fresh, said.hashes, said.tokens)
            for before_key, key in zip((None, *said.hashes), said.hashes, strict=False):
                tree.parent.setdefault(key, before_key)
                tree.held[key] = tree.held.get(key, 0) + 1
            running.append((sequence, said, fresh))
        assert set(pool._kept) == queue.kept() == {key for key in tree.parent if not tree.held.get(key)}
        assert pool.available == len(queue.queue)
        assert [queue.hash_of[block] for block in queue.queue if block in queue.hash_of] == list(pool._kept)


def _evict_to(tree: Tree, pool: BlockPool, need: int) -> None:
    for _ in range(need - pool.free):
        tree.evict()


@st.composite
def texts(draw: st.DrawFn) -> list[tuple[int, int, tuple[int, ...]]]:
    """(prompt, output, hashes through the answer) of requests that continue, share and repeat earlier texts."""
    names, said, out = Names(), [Talk()], []
    for _ in range(draw(st.integers(1, 25))):
        before = draw(st.sampled_from(said))
        cut = draw(st.integers(0, len(before.hashes)))
        base = before if draw(st.booleans()) else Talk(cut * BLOCK, before.hashes[:cut])
        prompt = names.longer(base, draw(st.integers(1, 14)))
        answered = names.longer(prompt, draw(st.integers(1, 10)))
        out.append((prompt.tokens, answered.tokens - prompt.tokens, answered.hashes))
        said.append(answered)
    return out


@settings(max_examples=200, deadline=None)
@given(texts(), st.integers(0, 40))
def test_records_tell_what_the_cache_had(rows: list[tuple[int, int, tuple[int, ...]]], spare: int) -> None:
    """One request after another through the simulator: its cached tokens are those of the naive queue, each exactly."""
    total = max(-(-(prompt + output) // BLOCK) for prompt, output, _ in rows) + spare
    requests = [
        Request(serial, 1e4 * serial, prompt, output, hashes, answer_hashed=True)
        for serial, (prompt, output, hashes) in enumerate(rows)
    ]
    policy = Continuous(4, 4096, prefix_cache=True)
    run = simulate(requests, policy, UnitStep(), blocks=total, block_tokens=BLOCK, hash_block_tokens=BLOCK)
    queue, expected = FreeQueue(total), []
    for prompt, output, hashes in rows:
        expected.append(BLOCK * len(queue.hits(hashes, prompt)))
        table = queue.allocate(hashes, prompt)
        assert table is not None
        table += queue.grow(-(-(prompt + output - 1) // BLOCK) - len(table))
        queue.fill(table, hashes, prompt + output - 1)
        queue.free(table)

    assert set(run.requests.status) == {COMPLETED}
    assert list(run.requests.cached_tokens) == expected
