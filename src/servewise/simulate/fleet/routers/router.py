"""The seam between a fleet and its router."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from servewise.batching.sequence import Sequence as Tokens


class Choice(Protocol):
    """A replica as a router sees it.

    ``in_flight``: requests that were sent there and have not ended, the router's own count; ``waiting`` of them have no
    slot yet, as servers report it. ``weight``: how much work it takes beside the others.
    """

    number: int
    weight: float
    in_flight: int

    @property
    def waiting(self) -> int:
        """Requests that wait there."""
        ...


class Router(Protocol):
    """Chooses a replica for each request, when it comes. Randomness is a seeded object of its own."""

    @property
    def name(self) -> str:
        """How results name it."""
        ...

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:
        """The place in ``up`` (in order of number, never empty) of the replica that gets ``request``."""
        ...

    def gone(self, number: int) -> None:
        """Replica ``number`` failed or was taken away; what it had cached is lost."""
        ...


def heeds_state(router: Router) -> bool:
    """Whether its choices hang on what servers do. One that says ``heeds_state = False`` goes by requests, and by the
    replicas' numbers and weights: where each request goes is known before any of them is run."""
    return bool(getattr(router, "heeds_state", True))


class Forgetful:
    """A router that keeps nothing about replicas that are gone."""

    def gone(self, number: int) -> None:
        """Nothing was kept."""
