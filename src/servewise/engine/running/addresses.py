"""Block addresses for the counts that the pool decides: block tables, shared blocks by hash, a list of free ones.

The pool's blocks are counted (``batching.blockpool``); here each has a number, its place in the KV cache. The
decisions (who is admitted, what is shared, kept and evicted) are the pool's, unchanged: this child only follows them.

Invariant (a property test holds it): every number is in the free list, or in tables, or cached under one hash; in two
tables only under a hash.
"""

from __future__ import annotations

from collections.abc import Iterable

from servewise.batching.blockpool import BlockPool
from servewise.batching.sequence import Sequence


class AddressedPool(BlockPool):
    """A pool of ``total`` numbered blocks: 0 to ``total`` - 1."""

    def __init__(self, total: int, block_tokens: int = 16, hash_block_tokens: int | None = None) -> None:
        super().__init__(total, block_tokens, hash_block_tokens)
        self.blocks = total
        self._free_addresses = list(range(total - 1, -1, -1))
        self.tables: dict[int, tuple[int, ...]] = {}  # by serial; to read, not to change
        self._by_hash: dict[int, tuple[int, ...]] = {}

    def table(self, sequence: Sequence) -> tuple[int, ...]:
        """The block table of an admitted sequence: token i lies in block ``table[i // block_tokens]``."""
        return self.tables[sequence.serial]

    def admit(self, sequence: Sequence, tokens: int, spare: int = 0) -> bool:
        """As the pool decides; an admitted sequence has a table, its cached prefix first."""
        if not super().admit(sequence, tokens, spare):
            return False
        cached = sequence.block_hashes[: sequence.shared]
        shared = tuple(address for key in cached for address in self._by_hash[key])
        self.tables[sequence.serial] = shared + self._addresses(sequence.blocks)
        return True

    def cover(self, needs: Iterable[tuple[Sequence, int]]) -> None:
        """Lengthen tables ahead of a step: each sequence's for the tokens that it will then have in the cache.

        The pool takes the blocks when the step is committed; what must be evicted for them is evicted here, as it
        would be there.
        """
        missing = [(each, self.blocks_for(tokens) - len(self.tables[each.serial])) for each, tokens in needs]
        self.make_free(sum(count for _, count in missing if count > 0))
        for sequence, count in missing:
            if count > 0:
                self.tables[sequence.serial] += self._addresses(count)

    def release(self, sequence: Sequence) -> None:
        """As the pool decides; the table is gone, its private blocks are free."""
        self.publish(sequence)
        table = self.tables.pop(sequence.serial)
        self._free_addresses += reversed(table[sequence.shared * self._per_hash :])
        super().release(sequence)

    def free_among(self, addresses: Iterable[int]) -> tuple[int, ...]:
        """Those of ``addresses`` that are free."""
        return tuple(sorted(set(addresses).intersection(self._free_addresses)))

    def counts(self) -> tuple[int, int, int]:
        """Blocks (free, in tables, cached by hash and in no table); they add up to all of them."""
        in_tables = {address for table in self.tables.values() for address in table}
        cached = {address for addresses in self._by_hash.values() for address in addresses}
        return len(self._free_addresses), len(in_tables), len(cached - in_tables)

    def _addresses(self, count: int) -> tuple[int, ...]:
        free = self._free_addresses
        assert count <= len(free), f"the pool counted {count} blocks where {len(free)} are free"
        return tuple(free.pop() for _ in range(count))

    def _publish(self, sequence: Sequence, keys: tuple[int, ...]) -> None:
        start, size = sequence.shared * self._per_hash, self._per_hash
        super()._publish(sequence, keys)
        for key in keys:
            table = self.tables[sequence.serial]
            own, known = table[start : start + size], self._by_hash.get(key)
            if known is None:
                self._by_hash[key] = own
            else:
                self.tables[sequence.serial] = table[:start] + known + table[start + size :]
                self._free_addresses += own
            start += size

    def _forget(self, keys: list[int]) -> None:
        for key in keys:
            self._free_addresses += self._by_hash.pop(key)
