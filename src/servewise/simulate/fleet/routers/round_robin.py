"""Round robin: each replica in turn, in proportion to its weight."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.batching.sequence import Sequence as Tokens
from servewise.simulate.fleet.routers.router import Choice


class RoundRobin:
    """Smooth weighted round robin as nginx does it; with equal weights plain rotation by number.

    Each choice raises every replica's credit by its weight; the one with the most (the first of several) is chosen and
    pays the sum of the weights (nginx 1.25, src/http/ngx_http_upstream_round_robin.c, ngx_http_upstream_get_peer).
    """

    name = "round-robin"
    heeds_state = False

    def __init__(self) -> None:
        self._credit: dict[int, float] = {}

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:  # noqa: ARG002 - the seam of all routers
        """The next in turn."""
        credit, best, most, total = self._credit, 0, float("-inf"), 0.0
        for place, each in enumerate(up):
            total += each.weight
            credit[each.number] = have = credit.get(each.number, 0.0) + each.weight
            if have > most:
                best, most = place, have
        credit[up[best].number] -= total
        return best

    def gone(self, number: int) -> None:
        """Its credit lapses."""
        self._credit.pop(number, None)
