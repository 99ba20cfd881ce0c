"""Prefix aware: to the replica that was sent the longest part of the prompt before, unless loads are too unequal."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from servewise.batching.positive import positive
from servewise.batching.sequence import Sequence as Tokens
from servewise.simulate.fleet.routers.router import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """SGLang's settings, by its names, with its router's defaults (v0.5, sgl-router, router_args.py).

    A prompt counts as known where more than ``cache_threshold`` of its tokens are. Loads are unequal where max - min is
    above ``balance_abs_threshold`` requests and max above ``balance_rel_threshold`` x min.
    """

    cache_threshold: float = 0.3
    balance_abs_threshold: int = 64
    balance_rel_threshold: float = 1.5

    def __post_init__(self) -> None:
        """Refuse thresholds below 0."""
        for name in ("cache_threshold", "balance_abs_threshold", "balance_rel_threshold"):
            positive(name, getattr(self, name), zero=True)


class PrefixAware:
    """SGLang's cache-aware router (v0.5, sgl-router, policies/cache_aware.rs), on block hashes instead of characters.

    1. Loads unequal: the least loaded. 2. Else, if the longest known prefix is long enough: who has it, the least
    loaded of several. 3. Else the one that was sent the fewest blocks still believed to be kept, then the least loaded.

    What a replica has cached is the router's belief: the blocks that it was sent, the last ``kept_hashes`` of them (as
    many as its pool holds; None: all), least recently used forgotten first. It does not ask the servers. Left out:
    SGLang evicts by size every so many seconds, here at once.
    """

    name = "prefix-aware"

    def __init__(
        self, hash_block_tokens: int | None, kept_hashes: int | None = None, balance: Balance | None = None
    ) -> None:
        self._block_tokens = hash_block_tokens or 0
        self._kept = kept_hashes
        self._balance = balance or Balance()
        self._sent: dict[int, OrderedDict[int, None]] = {}  # replica -> hashes, least recently used first

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:
        """By prefix while loads are alike, by load otherwise."""
        hashes = self._prompt_hashes(request)
        place = self._choose(request, hashes, up)
        if hashes:
            self._remember(up[place].number, hashes)
        return place

    def _prompt_hashes(self, request: Tokens) -> tuple[int, ...]:
        """The prompt's blocks: the answer is not known when it is routed."""
        hashes = request.block_hashes
        return hashes[: request.prompt_tokens // self._block_tokens] if hashes and self._block_tokens else ()

    def _choose(self, request: Tokens, hashes: tuple[int, ...], up: Sequence[Choice]) -> int:
        loads = [each.in_flight / each.weight for each in up]
        most, least, balance = max(loads), min(loads), self._balance
        if most - least > balance.balance_abs_threshold and most > balance.balance_rel_threshold * least:
            return loads.index(least)
        known = [self.known_blocks(each.number, hashes) for each in up] if hashes else [0]
        longest = max(known)
        if longest * self._block_tokens > balance.cache_threshold * request.prompt_tokens:
            return min((load, place) for place, load in enumerate(loads) if known[place] == longest)[1]
        sent = self._sent
        held = [len(sent[each.number]) if each.number in sent else 0 for each in up]
        return min((held[place], load, place) for place, load in enumerate(loads))[2]

    def known_blocks(self, number: int, hashes: tuple[int, ...]) -> int:
        """How many of ``hashes``, from the first on, replica ``number`` was sent before."""
        sent, found = self._sent.get(number), 0
        if sent:
            for each in hashes:
                if each not in sent:
                    break
                found += 1
        return found

    def _remember(self, number: int, hashes: tuple[int, ...]) -> None:
        sent = self._sent.setdefault(number, OrderedDict())
        for each in reversed(hashes):  # a prefix outlives what follows it
            sent[each] = None
            sent.move_to_end(each)
        while self._kept is not None and len(sent) > self._kept:
            sent.popitem(last=False)

    def gone(self, number: int) -> None:
        """Its cache is lost."""
        self._sent.pop(number, None)
