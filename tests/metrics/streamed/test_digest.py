"""A run that leaves memory as it is made gives the summary and the balance of the same run kept in memory."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TypeVar

import pytest
from tests.simulate.pipelined.made import Straight, hop, run_of

from servewise.batching.policies import Continuous, Dynamic, Policy, Sglang, Static, Vllm
from servewise.metrics.saturation import Balance, trend
from servewise.metrics.slo import parse_slo
from servewise.metrics.streamed.digest import Digest
from servewise.metrics.summary import RunSummary, summarise
from servewise.records.columns import RequestColumns, StepColumns
from servewise.scratch import Scratch
from servewise.simulate.fleet.fleet import simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.pipeline import Pipeline
from servewise.workload.load import load_workload
from servewise.workload.request import Request
from servewise.workload.synthetic import Synthetic

SLO = parse_slo("ttft_p95<=20s, tpot_p95<=1.5s")
Columns = TypeVar("Columns", RequestColumns, StepColumns)


def _chat(count: int, rate_per_s: float) -> list[Request]:
    workload = load_workload("chat", rate_per_s=rate_per_s, requests=count)
    assert isinstance(workload, Synthetic)
    return list(workload.requests(0))


def _torn(columns: Columns, rows: int) -> list[Columns]:
    """The columns in parts of ``rows`` rows."""
    names = [each.name for each in fields(columns) if each.name not in ("token_times", "errors")]
    return [
        type(columns)(**{name: getattr(columns, name)[at : at + rows] for name in names})
        for at in range(0, len(columns), rows)
    ]


def _digested(
    requests: RequestColumns, steps: StepColumns, slots: int, rows: int, piece: int
) -> tuple[RunSummary, Balance]:
    with Scratch() as scratch:
        digest = Digest(scratch, slots=slots, slo=SLO, piece=piece)
        for part in _torn(requests, rows):
            digest.requests(part)
        for steps_part in _torn(steps, rows):
            digest.steps(steps_part)
        return digest.summary(), digest.balance()


def _compared(requests: RequestColumns, steps: StepColumns, slots: int, rows: int, piece: int) -> None:
    whole = summarise(requests, steps, slots=slots, slo=SLO), trend(requests)
    parts = _digested(requests, steps, slots, rows, piece)
    assert _plain(whole[0]) == _plain(parts[0])
    assert _plain(whole[1]) == _plain(parts[1])


def _plain(summary: RunSummary | Balance) -> RunSummary | Balance:
    """The summary with no NaN in it, which is unlike itself (from Python 3.13 on in data classes too)."""
    unknown = {each.name: None for each in fields(summary) if _is_nan(getattr(summary, each.name))}
    return replace(summary, **unknown)  # type: ignore[arg-type]


def _is_nan(value: object) -> bool:
    return (isinstance(value, float) and math.isnan(value)) or getattr(value, "n", 1) == 0


@pytest.mark.parametrize(
    ("policy", "rate_per_s"),
    [
        (Vllm(8, 512), 0.04),
        (Continuous(8, 512, reserve_output=True), 0.2),  # twice what it carries: the backlog grows
        (Static(4), 0.02),
        (Dynamic(4, 30.0), 0.02),
    ],
)
@pytest.mark.parametrize(("rows", "piece"), [(1_000, 128), (97, 1_000)])
def test_any_policy_in_parts_is_the_whole(policy: Policy, rate_per_s: float, rows: int, piece: int) -> None:
    """Preempted, rejected, overtaken, held by a static batch: percentiles, intervals, rates, phases and balance."""
    run = simulate(_chat(3_000, rate_per_s), policy, UnitStep(), blocks=160)
    assert set(run.requests.status) == {0, 1}
    _compared(run.requests, run.steps, run.slots, rows, piece)


@pytest.mark.parametrize("rows", [1, 50, 3_000])
def test_several_replicas_steps_in_parts_are_the_whole(rows: int) -> None:
    """Three servers write steps in turn; prompts without decodes hold up those of their own alone."""
    kinds = [ReplicaKind(policy=Continuous(6, 256, chunked_prefill=False), estimator=UnitStep(), blocks=300)] * 3
    run = simulate_fleet(_chat(700, 0.1), kinds, LeastLoaded())
    _compared(run.requests, run.steps, 6, rows, 128)


@pytest.mark.parametrize("rows", [1, 50, 3_000])
def test_several_lanes_steps_in_parts_are_the_whole(rows: int) -> None:
    """Four pipeline stages: four batches write steps in turn, those of each follow each other."""
    pipeline = Pipeline(tuple(Straight(0.3, 0.003) for _ in range(4)), hop(0.01))
    run, _ = run_of(_chat(500, 0.1), Sglang(16, 128), pipeline)
    assert set(run.steps.lane) == {0, 1, 2, 3}
    _compared(run.requests, run.steps, run.slots, rows, 128)


def test_answers_of_one_token_and_arrivals_at_one_moment() -> None:
    """Nothing decodes, then everything at once: no TPOT, no ITL, no trend; and nothing at all."""
    requests = [Request(serial, float(serial // 40), 30, 1) for serial in range(200)]
    run = simulate(requests, Continuous(8, 64), UnitStep())
    _compared(run.requests, run.steps, run.slots, 11, 128)
    at_once = [Request(serial, 0.0, 30, 2 + serial % 3) for serial in range(200)]
    run = simulate(at_once, Continuous(8, 64), UnitStep())
    _compared(run.requests, run.steps, run.slots, 11, 128)
    _compared(RequestColumns(), StepColumns(), 8, 11, 128)


@pytest.mark.slow
def test_fifty_thousand_requests_in_tiny_parts() -> None:
    """50,000 requests of the vLLM preset in parts of 500 rows: equal to the last bit."""
    run = simulate(_chat(50_000, 0.06), Vllm(16, 2048), UnitStep(), blocks=2_000)
    _compared(run.requests, run.steps, run.slots, 500, 4_096)


def test_a_run_that_leaves_memory_keeps_nothing_and_gives_all() -> None:
    """Given somewhere to go, every record goes there, in its order, and the run that comes back is empty."""
    requests = _chat(6_000, 0.06)
    kept = simulate(requests, Vllm(8, 512), UnitStep(), blocks=300)
    gone = _Taken()
    left = simulate(requests, Vllm(8, 512), UnitStep(), blocks=300, into=gone)
    assert (len(left.requests), len(left.steps)) == (0, 0)
    assert [each for part in gone.ended for each in part.id] == list(kept.requests.id)
    assert [each for part in gone.stepped for each in part.start_s] == list(kept.steps.start_s)


class _Taken:
    """A sink that keeps what comes."""

    def __init__(self) -> None:
        self.ended: list[RequestColumns] = []
        self.stepped: list[StepColumns] = []

    def requests(self, requests: RequestColumns) -> None:
        self.ended.append(requests)

    def steps(self, steps: StepColumns) -> None:
        self.stepped.append(steps)
