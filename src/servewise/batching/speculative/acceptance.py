"""How many of a sequence's draft tokens stand: by position, drawn from a seed and the sequence alone.

A draw belongs to (seed, serial of the sequence, tokens it has generated), so it does not depend on the batch, on the
draft length, on steps skipped or on a preemption, and two runs that differ in load alone accept alike.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul

from servewise.errors import InputError

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15  # the golden ratio's odd 64-bit fraction
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Acceptance:
    """The chance of each draft position to be accepted where all before it were; the last one holds for all later.

    ``hit_rate`` is the chance that there is a draft at all: an n-gram lookup finds a match, or it does not. Positions
    and requests are taken as independent; real acceptance differs between requests and falls with temperature.
    """

    by_position: tuple[float, ...]
    hit_rate: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no chance."""
        if not self.by_position:
            raise InputError("give at least one acceptance", where="acceptance", hint="e.g. 0.7 or 0.8,0.7,0.6")
        for each in (*self.by_position, self.hit_rate):
            if not 0 <= each <= 1:
                raise InputError(f"a chance lies between 0 and 1, not {each!r}", where="acceptance")

    def chances(self, k: int) -> tuple[float, ...]:
        """The conditional chances of positions 1 to ``k``, the hit rate within the first."""
        given, missing = self.by_position[:k], max(0, k - len(self.by_position))
        each = (*given, *[self.by_position[-1]] * missing)
        return (each[0] * self.hit_rate, *each[1:]) if each else ()

    def survival(self, k: int) -> tuple[float, ...]:
        """The chance of positions 1 to ``k`` to stand: what engines log as acceptance per position."""
        return tuple(accumulate(self.chances(k), mul))

    @staticmethod
    def of_survival(shares: Sequence[float]) -> Acceptance:
        """The acceptance whose survival is ``shares``, as vLLM logs it by position.

        >>> Acceptance.of_survival([0.8, 0.4]).by_position
        (0.8, 0.5)
        """
        before = [1.0, *shares[:-1]]
        return Acceptance(tuple(now / was if was else 0.0 for now, was in zip(shares, before, strict=True)))


class Draws:
    """Accepted counts by ``acceptance``, from ``seed``."""

    def __init__(self, acceptance: Acceptance, seed: int = 0) -> None:
        self.acceptance, self.seed = acceptance, seed
        self._origin = mixed(seed)

    @cached_property
    def _falls(self) -> list[float]:
        return [1.0 - each for each in self.acceptance.survival(MOST_DRAFTED)]

    def stream(self, serial: int) -> int:
        """What a sequence's draws start from."""
        return mixed(self._origin + (serial + 1) * _GAMMA)

    def accepted(self, stream: int, generated: int, k: int) -> int:
        """How many of ``k`` draft tokens stand that follow ``generated`` tokens of the sequence of ``stream``.

        Position i stands where a uniform number exceeds 1 - survival(i).
        """
        return bisect_right(self._falls, self._uniform(stream, generated), 0, k)

    def hits(self, stream: int, generated: int) -> bool:
        """Whether there is a draft at all at that place; where there is none, none of it stands."""
        return self._uniform(stream, generated) >= 1.0 - self.acceptance.hit_rate

    @staticmethod
    def _uniform(stream: int, generated: int) -> float:
        return (mixed(stream + generated * _GAMMA) >> 11) * _UNIT


MOST_DRAFTED = 256


def mixed(value: int) -> int:
    """SplitMix64's mixing of 64 bits (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators")."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
