"""A load that will be measured, as the simulator sees it: the same number of requests, the same steady window."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from servewise.measure.bench.summary import window_summary
from servewise.measure.bench.window import Window, closed_window, open_window
from servewise.metrics.latency import floats, ints, itl_of_steps
from servewise.metrics.sample import percentiles
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary, pool
from servewise.plan.saturation import saturation
from servewise.plan.server import Server
from servewise.records.columns import RequestColumns, TokenTimes
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.run import Run
from servewise.workload.arrivals import Poisson
from servewise.workload.lengths import Lengths
from servewise.workload.prefix import SharedPrefix
from servewise.workload.synthetic import ClosedLoop, Synthetic

SEEDS = 10
BACKLOG = 200  # different requests of the queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """``requests`` by ``streams`` users in a closed loop, each pausing ``pause_s`` [s], or at ``rate_per_s`` (Poisson).

    One of the two is given; a shared ``prefix`` comes on top of the prompts.
    """

    requests: int
    prompts: Lengths
    outputs: Lengths
    streams: int | None = None
    rate_per_s: float | None = None
    pause_s: float = 0.0
    prefix: SharedPrefix | None = None

    def __str__(self) -> str:
        """E.g. ``8 streams``, ``2.5 requests/s``."""
        if self.streams is None:
            return f"{self.rate_per_s:.3g} requests/s"
        return f"{self.streams} stream{'s' if self.streams > 1 else ''}"


def foretell(server: Server, load: Load, *, seeds: int = SEEDS, slo: Slo | None = None) -> RunSummary:
    """What a measurement of ``load`` at ``server`` will show: the mean of ``seeds`` such runs, each with its window."""
    return pool([_once(server, load, seed, slo) for seed in range(seeds)])


def _once(server: Server, load: Load, seed: int, slo: Slo | None) -> RunSummary:
    prefix = _shared(load.prefix, server.block_tokens)
    blocks = replace(server, hash_block_tokens=prefix.block_tokens if prefix else None)
    if load.streams is not None:
        loop = ClosedLoop(
            concurrency=load.streams,
            think_s=load.pause_s,
            prompt_lengths=load.prompts,
            output_lengths=load.outputs,
            requests=load.requests,
            prefix=prefix,
        )
        run = blocks.run(ClosedArrivals(loop.shapes(seed), load.streams, load.pause_s))
        return _summed(run, closed_window(run.requests, load.streams), slo)
    assert load.rate_per_s is not None, "a load has streams or a rate"
    traffic = Synthetic(
        arrivals=Poisson(load.rate_per_s),
        prompt_lengths=load.prompts,
        output_lengths=load.outputs,
        count=load.requests,
        prefix=prefix,
    )
    run = blocks.run(traffic.requests(seed))
    return _summed(run, open_window(run.requests), slo)


def _shared(prefix: SharedPrefix | None, block_tokens: int) -> SharedPrefix | None:
    """The prefix in blocks that a pool of such blocks can share."""
    return prefix and replace(prefix, block_tokens=math.lcm(prefix.block_tokens, block_tokens))


def _summed(run: Run, window: Window, slo: Slo | None) -> RunSummary:
    """The window's summary; gaps between tokens are those of the whole run's steps."""
    with_times(run.requests)
    gaps = percentiles(*itl_of_steps(run.steps))
    return replace(window_summary(run.requests, window, slo), itl=gaps)


def capacity_per_s(server: Server, load: Load) -> float:
    """Requests/s of ``load``'s lengths that the server gets through when there is always a queue."""
    loop = ClosedLoop(
        concurrency=1, think_s=0.0, prompt_lengths=load.prompts, output_lengths=load.outputs, requests=BACKLOG
    )
    return saturation(server, list(loop.shapes(0))).middle_per_s


def with_times(requests: RequestColumns) -> None:
    """Give simulated requests the times of their tokens, evenly from first to last; for counts, not for gaps."""
    times = TokenTimes()
    rows = zip(floats(requests.first_token_s), floats(requests.end_s), ints(requests.output_tokens), strict=True)
    for first, end, tokens in rows:
        known = np.isfinite(first) and np.isfinite(end)
        times.append(np.linspace(first, end, int(tokens)).tolist() if known else [])
    requests.token_times = times
