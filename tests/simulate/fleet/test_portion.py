"""A fleet run in parts, each by itself, is the fleet run whole: every record, in its order, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from random import Random

import pytest

from servewise.ask.deploying import deploy
from servewise.batching.policies import Continuous, Dynamic, Policy, Static, Vllm
from servewise.plan.clock import clock_for
from servewise.records.columns import RequestColumns, StepColumns
from servewise.records.selection import joined
from servewise.scratch import Scratch
from servewise.simulate.fleet.fleet import simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.merging import PortionRecords, merge
from servewise.simulate.fleet.portion import NotApart, simulate_portion
from servewise.simulate.fleet.routers.at_random import AtRandom
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.power_of_two import PowerOfTwo
from servewise.simulate.fleet.routers.prefix_aware import PrefixAware
from servewise.simulate.fleet.routers.prefix_hash import PrefixHash
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.fleet.routers.router import Router, heeds_state
from servewise.simulate.fleet.routers.session import SessionSticky
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.estimator import Estimator
from servewise.workload.load import load_workload
from servewise.workload.request import Request
from servewise.workload.synthetic import Synthetic

ROUTERS: dict[str, Callable[[], Router]] = {
    "round-robin": RoundRobin,
    "random": lambda: AtRandom(Random("r 0")),
    "prefix-hash": PrefixHash,
}


class _Whole:
    """A sink that puts its parts together."""

    def __init__(self) -> None:
        self.ended: list[RequestColumns] = []
        self.stepped = StepColumns()

    def requests(self, requests: RequestColumns) -> None:
        self.ended.append(requests)

    def steps(self, steps: StepColumns) -> None:
        for each in fields(StepColumns):
            getattr(self.stepped, each.name).extend(getattr(steps, each.name))


def _bits(columns: RequestColumns | StepColumns) -> dict[str, bytes]:
    """The columns as they are in memory: times that never came are equal too."""
    names = [each.name for each in fields(columns) if each.name not in ("token_times", "errors")]
    return {name: getattr(columns, name).tobytes() for name in names}


def _requests(count: int, rate_per_s: float, name: str = "rag") -> list[Request]:
    workload = load_workload(name, rate_per_s=rate_per_s, requests=count)
    assert isinstance(workload, Synthetic)
    return list(workload.requests(3))


def _in_parts(
    requests: Sequence[Request], kinds: Sequence[ReplicaKind], router: Callable[[], Router], parts: int, rows: int
) -> tuple[RequestColumns, StepColumns]:
    with Scratch() as scratch:
        found = []
        for part in range(parts):
            records = PortionRecords(scratch)
            simulate_portion(requests, kinds, router(), range(len(kinds))[part::parts], records)
            found.append(records)
        whole = _Whole()
        merge(found, whole, rows=rows)
        return joined(whole.ended), whole.stepped


def _kinds(policy: Policy, clock: Estimator, weights: Sequence[float], blocks: int = 400) -> list[ReplicaKind]:
    return [
        ReplicaKind(policy=policy, estimator=clock, blocks=blocks, hash_block_tokens=16, weight=weight)
        for weight in weights
    ]


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("policy", [Vllm(8, 512), Continuous(4, 2048, prefix_cache=True), Dynamic(4, 20.0)])
@pytest.mark.parametrize("parts", [2, 3])
def test_parts_together_are_the_whole(router: str, policy: Policy, parts: int) -> None:
    """Steps of one second each, so that many end at one moment: three servers of unequal weights, preemptions."""
    requests = [each._replace(arrival_s=float(round(each.arrival_s))) for each in _requests(400, 0.08)]
    kinds = _kinds(policy, UnitStep(), (1.0, 2.0, 1.0))
    whole = simulate_fleet(requests, kinds, ROUTERS[router]())
    ended, stepped = _in_parts(requests, kinds, ROUTERS[router], parts, rows=50)
    assert _bits(ended) == _bits(whole.requests)
    assert _bits(stepped) == _bits(whole.steps)


@pytest.mark.parametrize("stages", [1, 2])
def test_parts_by_a_real_clock(stages: int) -> None:
    """The shipped clock of H100s, where times are no whole numbers and jumps are cut by rounding; pipelined too."""
    deployment = deploy("llama-3.1-8b", "h100-sxm", tp=1, pp=stages)
    requests = _requests(1_500, 40.0, "chat")
    kinds = [
        replace(each, deployment=deployment)
        for each in _kinds(Vllm(64, 2048), clock_for(deployment, None), (1.0,) * 4, blocks=3_000)
    ]
    whole = simulate_fleet(requests, kinds, RoundRobin())
    ended, stepped = _in_parts(requests, kinds, RoundRobin, 2, rows=300)
    assert _bits(ended) == _bits(whole.requests)
    assert _bits(stepped) == _bits(whole.steps)


def test_rejected_requests_stand_where_they_came() -> None:
    """A pool that holds only the shorter prompts: rejected requests are in the order of arrival among the others."""
    requests = [Request(at, float(at // 3), 40 + 400 * (at % 4 == 0), 5) for at in range(60)]
    kinds = _kinds(Continuous(4, 512), UnitStep(), (1.0, 1.0), blocks=10)
    whole = simulate_fleet(requests, kinds, RoundRobin())
    assert 1 in whole.requests.status
    assert _bits(_in_parts(requests, kinds, RoundRobin, 2, rows=7)[0]) == _bits(whole.requests)


def test_a_static_batch_that_waits_for_company_is_not_taken_apart() -> None:
    """When the last of its batches begins is for the whole fleet to say."""
    requests = [Request(at, float(at), 40, 5) for at in range(9)]
    kinds = _kinds(Static(4), UnitStep(), (1.0, 1.0))
    with Scratch() as scratch, pytest.raises(NotApart):
        simulate_portion(requests, kinds, RoundRobin(), [0], PortionRecords(scratch))


def test_which_routers_heed_what_servers_do() -> None:
    """By the load they choose otherwise while one of two servers is busy: those that do may not be taken apart."""
    heeding: list[Router] = [LeastLoaded(), PowerOfTwo(Random(0)), PrefixAware(16), SessionSticky(16)]
    assert all(heeds_state(each) for each in heeding)
    assert not any(heeds_state(make()) for make in ROUTERS.values())
