"""Acceptance by position, as counts that can be added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class PositionCounts(NamedTuple):
    """One draft position, counted from 1: verifications that ``asked`` for it, and how far it came.

    ``offered``: the draft had a token for it; ``reached``: and all before it were accepted; ``accepted``: and so was
    it. accepted / asked is the share that survives up to here (what vLLM logs), accepted / reached the acceptance of
    a token given that all before it stood.
    """

    asked: float = 0
    offered: float = 0
    reached: float = 0
    accepted: float = 0

    @property
    def survival(self) -> float:
        """accepted / asked; 0 where it was never asked for."""
        return self.accepted / self.asked if self.asked else 0.0

    @property
    def acceptance(self) -> float:
        """accepted / reached; 0 where it was never reached."""
        return self.accepted / self.reached if self.reached else 0.0

    def plus(self, other: PositionCounts) -> PositionCounts:
        """The sum."""
        return PositionCounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass(slots=True)
class AcceptanceCounts:
    """Counts of all positions, over any number of verifications."""

    positions: list[PositionCounts] = field(default_factory=list)

    def observe(self, asked: int, offered: int, accepted: int) -> None:
        """One verification: ``asked`` tokens of the draft, which ``offered`` some, of which the first ``accepted``."""
        self._grow(asked)
        for place in range(asked):
            there = place < offered
            one = PositionCounts(1, there, there and place <= accepted, there and place < accepted)
            self.positions[place] = self.positions[place].plus(one)

    def add(self, other: AcceptanceCounts) -> None:
        """Add the verifications that ``other`` counted."""
        self._grow(len(other.positions))
        for place, theirs in enumerate(other.positions):
            self.positions[place] = self.positions[place].plus(theirs)

    def survival(self) -> list[float]:
        """The share of drafts that survive up to each position.

        It falls with the position in every verification; where later positions were asked for less often, chance could
        make it rise, and it is held at what came before.
        """
        shares, least = [], 1.0
        for each in self.positions:
            least = min(least, each.survival)
            shares.append(least)
        return shares

    def to_json(self) -> list[dict[str, float]]:
        """One row a position."""
        return [
            {"position": place, **each._asdict(), "acceptance": each.acceptance, "survival": each.survival}
            for place, each in enumerate(self.positions, start=1)
        ]

    def _grow(self, positions: int) -> None:
        self.positions += [PositionCounts()] * (positions - len(self.positions))
