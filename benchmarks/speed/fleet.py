"""How many requests a second a fleet of eight simulates, on the Azure 2023 conversation trace tiled, on one core.

Llama 3.1 8B on eight H100 SXM by the shipped calibration, five requests/s on each; chunked prefill, block growth,
preemption and prefix cache on. ``alone`` is one replica with an eighth of the rate. Seconds are of this process's CPU,
so that others on the machine count little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from benchmarks.record import save, table
from servewise.ask.deploying import deploy
from servewise.ask.serving import PolicyOptions, capacity_for_serving, policy_named
from servewise.plan.clock import clock_for
from servewise.simulate.fleet.fleet import simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.power_of_two import PowerOfTwo
from servewise.simulate.fleet.routers.prefix_aware import PrefixAware
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.fleet.routers.router import Router
from servewise.workload.load import load_workload
from servewise.workload.request import Request
from servewise.workload.traces.trace import Trace

REPLICAS, REQUESTS, RATE_PER_S, BAR = 8, 100_000, 40.0, 15_000


def main() -> None:
    """Measure every router, print the table, write the record."""
    kind = _kind()
    routers: dict[str, Callable[[], Router]] = {
        "round-robin": RoundRobin,
        "least-loaded": LeastLoaded,
        "power-of-two": lambda: PowerOfTwo(Random(0)),
        "prefix-aware": lambda: PrefixAware(16, kind.kept_hashes),
    }
    rows = [_row("alone", kind, 1, RoundRobin())]
    rows += [_row(name, kind, REPLICAS, make()) for name, make in routers.items()]
    table(("router", "replicas", "requests/s", "bar", "step records a request"), rows)
    names = ("router", "replicas", "requests_per_s", "bar_requests_per_s", "events_per_request")
    save("fleet_speed", {"rows": [dict(zip(names, row, strict=True)) for row in rows]})


def _kind() -> ReplicaKind:
    deployment = deploy("llama-3.1-8b", "h100-sxm")
    capacity = capacity_for_serving(deployment)
    return ReplicaKind(
        policy=policy_named("continuous", deployment, PolicyOptions(prefix_cache=True)),
        estimator=clock_for(deployment, None),
        blocks=capacity.blocks,
        block_tokens=capacity.block_tokens,
        hash_block_tokens=16,
    )


def _row(name: str, kind: ReplicaKind, replicas: int, router: Router) -> list[object]:
    requests = _requests(RATE_PER_S * replicas / REPLICAS)
    started = time.process_time()
    run = simulate_fleet(requests, [kind] * replicas, router)
    seconds = time.process_time() - started
    return [name, replicas, REQUESTS / seconds, BAR, len(run.steps) / REQUESTS]


def _requests(rate_per_s: float) -> list[Request]:
    workload = load_workload("azure-conv", rate_per_s=rate_per_s, requests=REQUESTS)
    assert isinstance(workload, Trace)
    return list(workload.requests(0))


if __name__ == "__main__":
    main()
