"""A block pool with numbered blocks, as one would write it without a thought of speed: plain lists of who owns what."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Holding:
    """What one sequence holds: the named parts of its text that it shares, and its private blocks."""

    names: tuple[int, ...]
    shared: int = 0
    private: list[int] = field(default_factory=list)


class NaivePool:
    """``total`` numbered blocks of ``block`` tokens; names stand for ``name_blocks`` blocks each.

    Each block is in exactly one of: ``free``, a holding's ``private``, ``copies`` (under a name), ``aside``.
    """

    def __init__(self, total: int, block: int, name_blocks: int) -> None:
        self.total, self.block, self.name_blocks = total, block, name_blocks
        self.free = list(range(total))
        self.copies: dict[int, list[int]] = {}  # name -> its blocks
        self.holdings: dict[int, Holding] = {}
        self.used: list[int] = []  # names that nobody holds, the next to be evicted first
        self.aside: list[int] = []

    def owners(self, name: int) -> list[int]:
        """Who holds ``name``."""
        return [who for who, held in self.holdings.items() if name in held.names[: held.shared]]

    def match(self, names: tuple[int, ...], tokens: int) -> int:
        """The longest prefix there is, at least one of ``tokens`` left out, found by trying every length."""
        span = self.block * self.name_blocks
        there = [k for k in range(len(names) + 1) if k * span < tokens and all(n in self.copies for n in names[:k])]
        return max(there)

    def room(self, spared: tuple[int, ...] = ()) -> int:
        """Blocks that can be had without touching ``spared``."""
        return len(self.free) + self.name_blocks * sum(name not in spared for name in self.used)

    def take(self, count: int) -> list[int]:
        """``count`` blocks, names evicted one by one as needed."""
        self.make_free(count)
        taken, self.free = self.free[:count], self.free[count:]
        return taken

    def make_free(self, count: int) -> None:
        """Evict until ``count`` are free."""
        while len(self.free) < count:
            self.free += self.copies.pop(self.used.pop(0))

    def admit(self, who: int, names: tuple[int, ...], target: int, tokens: int, spare: int) -> bool:
        """Blocks for ``tokens`` of ``target`` tokens, the cached ones shared; False: ``spare`` would not be left."""
        hits = self.match(names, target)
        need = -(-tokens // self.block) - hits * self.name_blocks
        if need + spare > self.room(names[:hits]):
            return False
        for name in names[:hits]:
            if name in self.used:
                self.used.remove(name)
        held = self.holdings[who] = Holding(names, hits)
        held.private = self.take(need)
        return True

    def publish(self, who: int, tokens: int) -> None:
        """The first ``tokens`` tokens of ``who`` are computed: their whole names can be found from now on."""
        held = self.holdings[who]
        while held.shared < min(len(held.names), tokens // (self.block * self.name_blocks)):
            name = held.names[held.shared]
            mine, held.private = held.private[: self.name_blocks], held.private[self.name_blocks :]
            if name in self.copies:
                self.free += mine  # there is a copy: one is enough
                if name in self.used:
                    self.used.remove(name)
            else:
                self.copies[name] = mine
            held.shared += 1

    def release(self, who: int) -> None:
        """Give all back; what nobody else holds may be evicted after all that was released before, its end first."""
        held = self.holdings.pop(who)
        self.free += held.private
        self.used += [name for name in reversed(held.names[: held.shared]) if not self.owners(name)]

    def discard(self, names: tuple[int, ...]) -> None:
        """What nobody holds of ``names`` is gone."""
        for name in names:
            if name in self.used:
                self.used.remove(name)
                self.free += self.copies.pop(name)

    def check(self) -> None:
        """Each block is somewhere, and nowhere twice."""
        places = [self.free, self.aside, *self.copies.values(), *[held.private for held in self.holdings.values()]]
        assert sorted(block for place in places for block in place) == list(range(self.total))
        for name in self.copies:
            assert (name in self.used) != bool(self.owners(name)), name
