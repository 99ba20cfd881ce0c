"""How much of a stream of prompts a prefix cache finds again, and where prompts break the prefix.

The cache holds blocks named by chained hashes (equal hash: equal prompt up to and with that block), so a prompt reuses
its leading blocks only. Requests are taken one after another: each finds what those before it left, then leaves its
own prompt, and its answer where its hashes go on through it. Left out: blocks that a running request pins or has not
computed yet, and the last token, which engines compute again even on a full hit (both find less), and generated tokens
that a later turn repeats where no hash names them (that finds more).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from servewise.errors import InputError
from servewise.workload.request import Request

Kind = Literal["new", "divergence", "dropped"]
MAX_BREAKS = 4_096
MAX_REMEMBERED = 2**20


class Break(NamedTuple):
    """A depth at which prompts stop matching what the cache holds.

    ``offset_tokens`` tokens matched, up to the block ``after`` (None: none did). ``kind``: ``divergence``, an earlier
    prompt went on from there in another way; ``dropped``, the next block had been there and was evicted or had expired.
    ``requests`` broke there, and ``lost_tokens`` of them came after. Chained hashes cannot tell whether the text after
    the break was the same (a clock in the system prompt) or another (another user): for a divergence ``lost_tokens``
    is the most that moving the changing part back could bring.
    """

    offset_tokens: int
    kind: Kind
    after: int | None
    requests: int
    lost_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """What a prefix cache found in a stream.

    Of ``blocks`` prompt blocks ``hit_blocks`` were found; ``reusable_tokens`` are the prompt tokens in them; ``breaks``
    are where the rest was lost, the costliest first (text that nobody sent before is not lost, and not listed).
    ``distinct_blocks`` are exact up to 2**20, beyond that an upper bound.
    """

    requests: int
    prompt_tokens: int
    blocks: int
    hit_blocks: int
    reusable_tokens: int
    distinct_blocks: int
    breaks: tuple[Break, ...]

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that were found."""
        return self.reusable_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def block_hit_rate(self) -> float:
        """The share of blocks that were found."""
        return self.hit_blocks / self.blocks if self.blocks else 0.0


class BlockStore:
    """Blocks by recency of use, endless or at most ``capacity_blocks``, each living ``ttl_s`` from its last use.

    A prompt's blocks are used from its last to its first, so that the least recently used block of a chain is always
    its deepest and a prefix is never broken in the middle. Every operation is O(1) a block, amortised.
    """

    def __init__(self, capacity_blocks: int | None = None, ttl_s: float | None = None) -> None:
        if capacity_blocks is not None and capacity_blocks < 1:
            raise InputError(f"a cache holds at least one block, not {capacity_blocks!r}", where="capacity")
        if ttl_s is not None and not ttl_s > 0:
            raise InputError(f"must be above 0 s, not {ttl_s!r}", where="ttl")
        self._capacity = capacity_blocks
        self._ttl_s = ttl_s
        self._last_used: OrderedDict[int, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last_used)

    def leading(self, hashes: tuple[int, ...], now_s: float) -> int:
        """How many leading blocks of ``hashes`` are held at ``now_s``."""
        self._expire(now_s)
        held = self._last_used
        for found, block in enumerate(hashes):
            if block not in held:
                return found
        return len(hashes)

    def use(self, hashes: tuple[int, ...], now_s: float) -> None:
        """Holds the blocks of one prompt, each used at ``now_s``; the least recently used make room."""
        held = self._last_used
        for block in reversed(hashes):
            held[block] = now_s
            held.move_to_end(block)
        if self._capacity is not None:
            while len(held) > self._capacity:
                held.popitem(last=False)

    def _expire(self, now_s: float) -> None:
        held = self._last_used
        while self._ttl_s is not None and held and now_s - next(iter(held.values())) > self._ttl_s:
            held.popitem(last=False)


def count_reuse(
    requests: Iterable[Request],
    block_tokens: int,
    *,
    capacity_blocks: int | None = None,
    ttl_s: float | None = None,
    max_breaks: int = MAX_BREAKS,
) -> Reuse:
    """Streams ``requests`` through a prefix cache of blocks of ``block_tokens`` tokens and counts what it finds.

    ``capacity_blocks`` None: endless; else least recently used blocks go first. ``ttl_s``: life of a block from its
    last use [s]. Requests come in order of arrival. Time is O(1) a block. Memory is that of the blocks held, of up to
    2**20 blocks remembered to tell kinds of breaks apart, and of at most ``2 max_breaks`` places: with more, the
    lightest are forgotten and the counts of those left are lower bounds.
    """
    if block_tokens < 1:
        raise InputError(f"a block holds at least one token, not {block_tokens!r}", where="block")
    store, ledger = BlockStore(capacity_blocks, ttl_s), _Ledger(max_breaks, block_tokens)
    count = prompt_tokens = blocks = hit_blocks = reusable = 0
    for request in requests:
        hashes = request.prompt_hashes(block_tokens)
        found = store.leading(hashes, request.arrival_s)
        count += 1
        prompt_tokens += request.prompt_tokens
        blocks += len(hashes)
        hit_blocks += found
        reusable += min(found * block_tokens, request.prompt_tokens)
        ledger.note(hashes, found, request.prompt_tokens, request.block_hashes)
        store.use(request.block_hashes, request.arrival_s)
    return Reuse(
        requests=count,
        prompt_tokens=prompt_tokens,
        blocks=blocks,
        hit_blocks=hit_blocks,
        reusable_tokens=reusable,
        distinct_blocks=ledger.distinct_blocks,
        breaks=ledger.breaks(),
    )


class _Ledger:
    """The places where prompts broke, told from text that nobody sent before by the blocks seen so far.

    Remembers the ``MAX_REMEMBERED`` newest blocks, each with whether another block ever followed it.
    """

    def __init__(self, max_breaks: int, block_tokens: int) -> None:
        self.distinct_blocks = 0
        self._max_breaks = max_breaks
        self._block_tokens = block_tokens
        self._followed: OrderedDict[int | None, bool] = OrderedDict({None: False})
        self._lost: dict[tuple[int, Kind, int | None], tuple[int, int]] = {}

    def note(self, hashes: tuple[int, ...], found: int, prompt_tokens: int, left: tuple[int, ...]) -> None:
        """Takes in one prompt of which ``found`` leading blocks were held; ``left`` are its blocks and its answer's."""
        before = hashes[found - 1] if found else None
        if found < len(hashes):
            kind = self._kind(before, hashes[found])
            if kind != "new":
                self._add((found * self._block_tokens, kind, before), prompt_tokens - found * self._block_tokens)
        for block in left[found:]:
            self._followed[before] = True
            self.distinct_blocks += block not in self._followed
            self._followed.setdefault(block, False)
            before = block
        while len(self._followed) > MAX_REMEMBERED:
            self._followed.popitem(last=False)

    def breaks(self) -> tuple[Break, ...]:
        """The places where tokens were lost, the costliest first."""
        rows = [Break(offset, kind, after, *counts) for (offset, kind, after), counts in self._lost.items()]
        return tuple(sorted(rows, key=_cost)[: self._max_breaks])

    def _kind(self, before: int | None, block: int) -> Kind:
        if block in self._followed:
            return "dropped"
        return "divergence" if self._followed.get(before) else "new"

    def _add(self, place: tuple[int, Kind, int | None], tokens: int) -> None:
        requests, lost = self._lost.get(place, (0, 0))
        self._lost[place] = (requests + 1, lost + max(tokens, 0))
        if len(self._lost) > 2 * self._max_breaks:
            heaviest = sorted(self._lost.items(), key=lambda item: -item[1][1])
            self._lost = dict(heaviest[: self._max_breaks])


def _cost(row: Break) -> tuple[int, int, str]:
    return -row.lost_tokens, row.offset_tokens, str(row.after)
