"""At random: each request to a replica drawn in proportion to the weights."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from servewise.batching.sequence import Sequence as Tokens
from servewise.simulate.fleet.routers.router import Choice, Forgetful


class AtRandom(Forgetful):
    """Draws by ``rng``; a Poisson stream becomes an independent one for each replica."""

    name = "random"
    heeds_state = False

    def __init__(self, rng: Random) -> None:
        self._random = rng.random

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:  # noqa: ARG002
        """One at random."""
        left = self._random() * sum([each.weight for each in up])
        for place, each in enumerate(up):
            left -= each.weight
            if left < 0:
                return place
        return len(up) - 1
