"""Was the client itself the limit? Whether its own lateness would move a reported percentile by over 1%.

Three ways to be late, each measured in every run (``Sending``):

1. Sends. TTFT counts from the schedule, and ``ttft_from_sent`` from when the request left: what a percentile differs
   by is the client's.
2. Reads, where arrivals are stamped by the program itself (no kernel stamps: TLS, macOS). An arrival during a time s in
   which the loop did not look at its sockets is stamped late by up to s. For arrivals spread evenly over the run the
   delay D has P(D > x) = sum of max(s - x, 0) / run over all such times; its quantile bounds what a percentile moves.
   With kernel stamps a late read moves nothing.
3. Processor. Above 90% of a core a process no longer knows how late it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from servewise.caveats import Caveat
from servewise.measure.sending import Sending
from servewise.metrics.summary import RunSummary
from servewise.units import format_seconds

LIMIT = 0.01
BUSY, AIM = 0.9, 0.5  # of a core: too busy to tell, and what a worker should have at most
NAMES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
CODE = "client-saturated"


def client_saturated(summary: RunSummary, sending: Sending, *, kernel: bool, tokens: float) -> tuple[Caveat, ...]:
    """The caveat, once, with every way in which it shows; none for a client that kept up.

    ``kernel``: all arrivals have the kernel's stamps. ``tokens`` is the mean number of output tokens of a request.
    """
    ways = [*_sends(summary), *([] if kernel else _reads(summary, sending, tokens)), *_processor(sending)]
    if not ways:
        return ()
    message = "the client, not the server, shows in these figures: " + "; ".join(ways)
    return (Caveat(CODE, message, _cure(sending)),)


def delay_quantile(stalls_s: Sequence[float], wall_s: float, share: float) -> float:
    """The ``share`` quantile of the delay [s] of a read that comes at any moment of ``wall_s`` alike.

    >>> round(delay_quantile([0.1], 1.0, 0.95), 9), delay_quantile([], 1.0, 0.99)
    (0.05, 0.0)
    """
    stalls: NDArray[np.float64] = np.sort(np.asarray(stalls_s, float))[::-1]
    allowed = (1 - share) * wall_s
    if wall_s <= 0 or stalls.sum() <= allowed:
        return 0.0
    # Between two stalls of the sorted list the excess falls linearly in x: sum of the k longest - k x = allowed.
    excess = np.cumsum(stalls)
    counts = np.arange(1, len(stalls) + 1)
    following = np.append(stalls[1:], 0.0)
    place = int(np.argmax(excess - counts * following >= allowed))
    return float((excess[place] - allowed) / counts[place])


def busy(sending: Sending) -> float:
    """Processor time of a worker over the run's length, 1 is a whole core."""
    return sending.cpu_s / (sending.wall_s * sending.workers) if sending.wall_s > 0 else 0.0


def _sends(summary: RunSummary) -> list[str]:
    found = []
    for name in NAMES:
        due, sent = getattr(summary.ttft, name), getattr(summary.ttft_from_sent, name)
        if due > sent * (1 + LIMIT):
            late = format_seconds(due - sent)
            found.append(
                f"requests left late, which is {late} of TTFT {name}, {format_seconds(due)} (not in ttft_from_sent)"
            )
    return found[-1:]


def _reads(summary: RunSummary, sending: Sending, tokens: float) -> list[str]:
    found = []
    for name, share in NAMES.items():
        delay = delay_quantile(sending.stalls_s, sending.wall_s, share)
        moved = {"TTFT": (summary.ttft, delay), "TPOT": (summary.tpot, delay / max(tokens - 1, 1))}
        for metric, (latencies, reach) in moved.items():
            value = getattr(latencies, name)
            if reach > LIMIT * value:
                words = f"{metric} {name} ({format_seconds(value)}) by up to {format_seconds(reach)}"
                found.append(f"reads came late, which moves {words}")
    return found[-1:]


def _processor(sending: Sending) -> list[str]:
    used = busy(sending)
    return [f"its processes used {100 * used:.0f}% of a core each"] if used > BUSY else []


def _cure(sending: Sending) -> str:
    """More workers where processors are short; where they idle, what disturbs them."""
    if busy(sending) <= AIM:
        return "a client on cores that nothing else uses, or on another machine (its processes are mostly idle)"
    wanted = max(sending.workers + 1, int(np.ceil(sending.workers * busy(sending) / AIM)))
    return f"--workers {wanted} (now {sending.workers}), on cores that the server does not use, or from another machine"
