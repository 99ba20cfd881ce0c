"""Which blocks of a prompt came before, as an automatic prefix cache without a bound has them."""

from __future__ import annotations

from collections.abc import Sequence


class PrefixCache:
    """Blocks of ``block`` words, each known together with everything before it."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._seen: set[int] = set()

    def cached(self, words: Sequence[str]) -> int:
        """How many words lie in known blocks from the start (never the last word); all are known from now on."""
        chain, hit, known = 0, 0, True
        for end in range(self._block, len(words) + 1, self._block):
            chain = hash((chain, *words[end - self._block : end]))
            known = known and chain in self._seen and end < len(words)
            hit = end if known else hit
            self._seen.add(chain)
        return hit

    def clear(self) -> None:
        """Forget everything."""
        self._seen.clear()
