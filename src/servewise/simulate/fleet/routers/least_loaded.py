"""Least loaded: join the shortest queue."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.batching.positive import positive
from servewise.batching.sequence import Sequence as Tokens
from servewise.simulate.fleet.routers.router import Choice, Forgetful


class LeastLoaded(Forgetful):
    """The least (running + ``waiting_weight`` x waiting + 1) / weight, the first of several.

    ``waiting_weight`` 1 counts requests that have not ended, as nginx's least_conn and SGLang's router do; vLLM's own
    balancer of data-parallel ranks counts a waiting one four times (v0.11, v1/engine/core_client.py,
    DPLBAsyncMPClient: ``score = waiting * 4 + running``). The 1 is the request itself, so that of idle replicas the
    one of the greatest weight is taken (Linux IPVS, "shortest expected delay").
    """

    name = "least-loaded"

    def __init__(self, waiting_weight: float = 1.0) -> None:
        positive("the weight of a waiting request", waiting_weight)
        self._extra = waiting_weight - 1.0

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:  # noqa: ARG002
        """The least loaded."""
        best, least, extra = 0, float("inf"), self._extra
        for place, each in enumerate(up):
            load = (each.in_flight + 1 + (extra * each.waiting if extra else 0.0)) / each.weight
            if load < least:
                best, least = place, load
        return best
