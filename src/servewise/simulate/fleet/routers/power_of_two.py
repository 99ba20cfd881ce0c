"""Power of two choices: of two replicas drawn at random, the less loaded one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from servewise.batching.sequence import Sequence as Tokens
from servewise.simulate.fleet.routers.router import Choice, Forgetful


class PowerOfTwo(Forgetful):
    """Two different replicas by ``rng``, then the one of fewer requests in flight for its weight, the first if equal.

    Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing" (2001); SGLang's router does the same
    (sgl-router, policies/power_of_two.rs, v0.5).
    """

    name = "power-of-two"

    def __init__(self, rng: Random) -> None:
        self._random = rng.random

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:  # noqa: ARG002 - the seam of all routers
        """The less loaded of two."""
        size, draw = len(up), self._random
        first = int(draw() * size)
        if size == 1:
            return first
        second = int(draw() * (size - 1))
        second += second >= first
        one, other = up[first], up[second]
        return first if one.in_flight * other.weight <= other.in_flight * one.weight else second
