"""Real servers in a closed loop: the simulator within its bars on held-out points, and as its record says."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from benchmarks.accuracy.e2e_measured.judge import Judged, judge
from benchmarks.accuracy.e2e_measured.points import Point, points
from benchmarks.accuracy.e2e_measured.splits import SPLITS, telling
from benchmarks.accuracy.e2e_measured.summary import TPOT_BAR, TTFT_BAR

RECORD = Path(__file__).parents[2] / "benchmarks" / "results" / "e2e_measured.json"
EVERY, LIGHT = 9, 32


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """The benchmark's result of record."""
    found: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    """Every ninth held-out point of light load, by the fit that had not seen it."""
    jobs = [(p, s.name, s.by) for s in SPLITS if s.by != "accelerator" for p in s.held() if p.concurrency <= LIGHT]
    return [judge(*job) for job in jobs[::EVERY]]


def test_no_fit_sees_what_it_is_judged_on() -> None:
    """A split's two sides share no point, and no judged point told the settings that were not published."""
    for split in SPLITS:
        assert not set(split.fitted()) & set(split.held()), split.name
        assert not any(map(telling, split.held())), split.name


def test_each_point_is_judged_once() -> None:
    """Of the splits by model and load each point is in one at most, and all but the telling ones are in one."""
    held = [point for split in SPLITS if split.by != "accelerator" for point in split.held()]

    assert len(held) == len(set(held))
    assert set(held) == {point for point in points() if not telling(point)}


def test_held_out_points_are_within_the_bars(judged: list[Judged]) -> None:
    """Median errors on points that the fit had not seen: TPOT at most 10%, TTFT at most 30%."""
    assert median(abs(each.tpot_error) for each in judged) <= TPOT_BAR
    assert median(abs(each.ttft_error) for each in judged) <= TTFT_BAR


def test_better_than_the_peer(judged: list[Judged]) -> None:
    """On the same points AIConfigurator's own predictions are further off, in both."""
    shared = [each for each in judged if each.point.peer_ttft_s and each.point.peer_tpot_s]

    assert median(abs(e.ttft_error) for e in shared) < median(abs(_peer(e.point, "ttft")) for e in shared)
    assert median(abs(e.tpot_error) for e in shared) < median(abs(_peer(e.point, "tpot")) for e in shared)


def test_predictions_are_those_on_record(judged: list[Judged], record: dict[str, Any]) -> None:
    """Each prediction is the committed one, to rounding: who changes predictions reruns the benchmark."""
    for each in judged:
        ttft, tpot, _ = map(float, record["points"][each.point.name].split())
        assert each.served.ttft_s == pytest.approx(ttft, rel=1e-3), each.point.name
        assert each.served.tpot_s == pytest.approx(tpot, rel=1e-3), each.point.name


def _peer(point: Point, name: str) -> float:
    predicted: float = getattr(point, f"peer_{name}_s")
    measured: float = getattr(point, f"{name}_s")
    return predicted / measured - 1.0
