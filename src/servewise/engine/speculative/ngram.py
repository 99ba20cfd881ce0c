"""Prompt lookup: the tokens that followed when the last few stood there before (Saxena 2023; vLLM's ``ngram``)."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.engine.speculative.lane import Lane, Proposal
from servewise.errors import InputError


class NgramDraft:
    """Proposes what followed the longest match of the text's end, of ``min_n`` to ``max_n`` tokens, seen earlier.

    Among matches of the longest length the earliest counts, as in vLLM (``NgramProposer``). Costs a dictionary look-up
    for each length and token: a lane keeps where each n-gram first ended.
    """

    def __init__(self, min_n: int = 2, max_n: int = 4) -> None:
        if not 1 <= min_n <= max_n:
            raise InputError(f"n-grams of {min_n} to {max_n} tokens", where="ngram", hint="1 <= min_n <= max_n")
        self.min_n, self.max_n = min_n, max_n
        self._seen: dict[int, FirstEnds] = {}

    @property
    def name(self) -> str:
        """``ngram``."""
        return "ngram"

    def admit(self, lanes: Sequence[Lane]) -> bool:
        """Index the prompts."""
        for lane in lanes:
            self._seen[lane.serial] = FirstEnds(self.min_n, self.max_n)
            self._seen[lane.serial].take(lane.tokens)
        return True

    def propose(self, lanes: Sequence[Lane], lengths: Sequence[int]) -> list[Proposal]:
        """What followed, up to the lane's length; nothing where the text's end is new."""
        return [self._proposal(lane, length) for lane, length in zip(lanes, lengths, strict=True)]

    def release(self, lane: Lane) -> None:
        """Forget the lane's text."""
        del self._seen[lane.serial]

    def _proposal(self, lane: Lane, length: int) -> Proposal:
        seen = self._seen[lane.serial]
        seen.take(lane.tokens)
        end = seen.match(lane.tokens)
        return Proposal() if end is None else Proposal(tuple(lane.tokens[end : end + length]))


class FirstEnds:
    """Where each n-gram of a growing text first ended: the number of tokens up to and with it."""

    def __init__(self, min_n: int, max_n: int) -> None:
        self._ends: dict[int, dict[tuple[int, ...], int]] = {n: {} for n in range(max_n, min_n - 1, -1)}
        self._taken = 0

    def take(self, tokens: Sequence[int]) -> None:
        """Index the tokens that came since the last call."""
        for end in range(self._taken + 1, len(tokens) + 1):
            for n, ends in self._ends.items():
                if end >= n:
                    ends.setdefault(tuple(tokens[end - n : end]), end)
        self._taken = len(tokens)

    def match(self, tokens: Sequence[int]) -> int | None:
        """Where the longest n-gram at the text's end first ended, if that was before the end."""
        for n, ends in self._ends.items():
            end = ends.get(tuple(tokens[-n:]))
            if end is not None and end < len(tokens):
                return end
        return None
