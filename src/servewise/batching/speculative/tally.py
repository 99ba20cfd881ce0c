"""What speculation did in a run, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest


@dataclass(slots=True)
class Tally:
    """``verifications`` of one sequence each, ``drafted`` tokens in them, ``gained`` tokens that they gave.

    ``accepted``: how many verifications kept at least 1, 2, ... draft tokens. A request that ends within a verification
    wastes the rest of it, so ``gained`` is at most ``verifications`` plus the accepted. ``plain``: decoded rows
    without a draft, one token each.
    """

    verifications: int = 0
    drafted: int = 0
    gained: int = 0
    plain: int = 0
    accepted: list[int] = field(default_factory=list)

    def add(self, drafted: int, by_count: Sequence[int], gained: int, missed: int = 0) -> None:
        """One step: ``by_count[i]`` sequences kept i of ``drafted`` tokens each, all of them ``gained`` in all.

        ``missed`` of those that kept none had no draft.
        """
        rows = sum(by_count) - missed
        if not drafted:
            self.plain += rows
            return
        self.plain += missed
        self.verifications += rows
        self.drafted += rows * drafted
        self.gained += gained - missed
        self.accepted += [0] * (drafted - len(self.accepted))
        kept = 0
        for place in range(drafted, 0, -1):
            kept += by_count[place]
            self.accepted[place - 1] += kept

    def plus(self, other: Tally) -> Tally:
        """What both counted."""
        return Tally(
            self.verifications + other.verifications,
            self.drafted + other.drafted,
            self.gained + other.gained,
            self.plain + other.plain,
            [mine + theirs for mine, theirs in zip_longest(self.accepted, other.accepted, fillvalue=0)],
        )

    @property
    def tokens_per_verification(self) -> float:
        """Tokens that a verification gave a sequence on average [tokens]; 1 where there was none."""
        return self.gained / self.verifications if self.verifications else 1.0

    @property
    def survival(self) -> list[float]:
        """The share of verifications that kept each position, as engines log it."""
        return [each / self.verifications for each in self.accepted] if self.verifications else []
