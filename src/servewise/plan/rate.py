"""The most requests a second that a server can complete for ever, by both of its limits: its steps and its places."""

from __future__ import annotations

from math import inf

from servewise.batching.policies import Dynamic, Static
from servewise.plan.bounds import least_latencies, outside_s
from servewise.plan.lengths import Lengths
from servewise.plan.server import Server
from servewise.plan.throughput import filled_per_s


def most_per_s(server: Server, lengths: Lengths) -> float:
    """The highest rate of completions [requests/s] that ``server`` could keep up for requests of these lengths."""
    steps = filled_per_s(server, lengths)
    return steps if server.stages == 1 else min(steps, held_per_s(server, lengths))


def held_per_s(server: Server, lengths: Lengths) -> float:
    """What Little's law leaves of that rate: the requests held at once over the time that each takes alone.

    Of a pipeline this is often the lower of the two: steps that fill a stage need not fill them all. With one stage the
    steps say as much.
    """
    alone_s = float((least_latencies(server, lengths)["e2e"] - outside_s(server)).mean())
    return held_at_most(server) / alone_s if alone_s > 0 else inf


def held_at_most(server: Server) -> int:
    """Requests of a server at once; where batches are formed and released whole, each stage may have one."""
    slots, whole = server.policy.slots, isinstance(server.policy, Static | Dynamic)
    return slots * server.stages if whole else slots
