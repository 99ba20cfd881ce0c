"""Rows that scripts read, phases, resamples, rates and balance: each from numbers put in by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.metrics import made

from servewise.metrics.bootstrap import interval, ratio, resampled
from servewise.metrics.claim import Claim, Judgement
from servewise.metrics.comparison import Comparison
from servewise.metrics.percentiles import Percentiles
from servewise.metrics.phases import Phases, mean_phases, phases, pooled
from servewise.metrics.replicas import mean
from servewise.metrics.sample import rate, weighted_mean
from servewise.metrics.saturation import trend
from servewise.records.columns import RequestColumns


def test_a_compared_metric() -> None:
    """A row of ``compare``; an interval that is not known is null."""
    row = Comparison("ttft_p95", 1.0, 2.0, 2.0, (1.5, 2.5), "worse", paired=True)

    assert row.to_json() == {
        "metric": "ttft_p95",
        "a": 1.0,
        "b": 2.0,
        "ratio": 2.0,
        "ci95": [1.5, 2.5],
        "verdict": "worse",
        "paired": True,
    }
    assert Comparison("ttft_p95", 1.0, 2.0, 2.0, None, "unclear").to_json()["ci95"] is None
    assert Comparison("ttft_p95", 1.0, 2.0, 2.0, None, "unclear").to_json()["paired"] is False


def test_a_judged_claim() -> None:
    """What was claimed beside what the runs show."""
    claim = Claim(factor=2.0, metric="tpot_p50", tolerance=0.1)

    assert Judgement(claim, 2.5, (2.4, 2.6), "reproduced").to_json() == {
        "metric": "tpot_p50",
        "claimed": 2.0,
        "tolerance": 0.1,
        "speedup": 2.5,
        "ci95": [2.4, 2.6],
        "verdict": "reproduced",
    }
    assert Judgement(claim, 2.5, None, "undecided").to_json()["ci95"] is None


def test_percentiles() -> None:
    """Five values, every known interval, and of how many."""
    found = Percentiles(mean=1.0, p50=2.0, p90=3.0, p95=4.0, p99=5.0, n=6, ci95={"p50": (1.5, 2.5)})
    plain = {"mean": 1.0, "p50": 2.0, "p90": 3.0, "p95": 4.0, "p99": 5.0, "n": 6}

    assert found.to_json() == plain | {"ci95_p50": [1.5, 2.5]}


def recorded(rows: int = 2) -> RequestColumns:
    """Requests of 10 and 20 s: 1 and 3 s of queue, 2 and 4 of prefill, 0 and 5 away, 1 and 0 between servers."""
    run = made.requests([0.0, 5.0], [4.0, 13.0], [10.0, 25.0], [9, 9], admitted=[1.0, 8.0])
    run.prefill_s, run.preempted_s, run.transfer_s = (
        made.floats([2.0, 4.0]),
        made.floats([0.0, 5.0]),
        made.floats([1.0, 0.0]),
    )
    return run


def test_phases_are_what_is_left_of_the_whole() -> None:
    """Decode: 10 - 1 - 2 - 0 - 1 = 6, and 20 - 3 - 4 - 5 - 0 = 8."""
    found = phases(recorded())
    assert found is not None

    assert {name: column.tolist() for name, column in found.items()} == {
        "queue_s": [1.0, 3.0],
        "prefill_s": [2.0, 4.0],
        "decode_s": [6.0, 8.0],
        "preempted_s": [0.0, 5.0],
        "transfer_s": [1.0, 0.0],
    }


def test_phases_of_several_runs_are_weighted_by_their_requests() -> None:
    """Means of 2, 3, 7, 2.5, 0.5 over two requests, and those of the second alone once: (2 m + second) / 3."""
    both, last = (mean_phases(recorded(), np.array(rows)) for rows in ([0, 1], [1]))
    assert both is not None
    assert last is not None
    found = pooled([(both, 2), (last, 1)])
    assert found is not None

    assert found.to_json() == pytest.approx(
        {"queue_s": 7 / 3, "prefill_s": 10 / 3, "decode_s": 22 / 3, "preempted_s": 10 / 3, "transfer_s": 1 / 3}
    )
    assert sum(found.to_json().values()) == pytest.approx((10 + 20 + 20) / 3)


def test_phases_of_nothing_are_not_known() -> None:
    """No rows, no requests, a record that only a client made, runs without requests."""
    client = made.requests([0.0], [1.0], [2.0], [3])
    none = np.empty(0, np.int64)

    assert mean_phases(recorded(), none) is None
    assert phases(RequestColumns()) is phases(client) is None
    assert mean_phases(client, np.array([0])) is None
    assert pooled([]) is pooled([(Phases(**dict.fromkeys(recorded_names(), 1.0)), 0)]) is None


def recorded_names() -> tuple[str, ...]:
    """The parts."""
    return "queue_s", "prefill_s", "decode_s", "preempted_s", "transfer_s"


def test_a_resample_without_a_value_has_no_ratio() -> None:
    """All values lie in the first of two blocks: a resample of the second twice has none, so the ratio is not told."""
    draws = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]] * 100)
    found = resampled(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 0]), draws)
    ratios = ratio(found["mean"], np.ones(300))

    assert found["mean"][:2].tolist() == [2.0, 2.0]
    assert math.isnan(found["mean"][2])
    assert interval(ratios, 2) is None
    assert interval(np.ones(300), 1) is None
    assert interval(np.ones(300), 2) == (1.0, 1.0)


def test_resampled_percentiles_are_of_what_was_drawn() -> None:
    """Blocks (1, 3) and (2, 9): drawn once each the median is 2.5, p90 is 7.2; the second twice gives 5.5 and 9."""
    values, block = np.array([1.0, 3.0, 2.0, 9.0]), np.array([0, 0, 1, 1])
    draws = np.array([[1.0, 1.0], [0.0, 2.0]] * 300)
    found = resampled(values, block, draws)

    assert found["mean"][:2].tolist() == [3.75, 5.5]
    assert found["p50"][:2].tolist() == [2.5, 5.5]
    assert found["p90"][:2] == pytest.approx([3 + 0.7 * 6, 9.0])


def test_ratios_over_nothing_are_no_numbers() -> None:
    """1 / 0 is not known, 0 / 2 is 0."""
    found = ratio(np.array([1.0, 0.0]), np.array([0.0, 2.0]))

    assert math.isnan(found[0])
    assert found[1] == 0.0


def test_an_interval_of_what_may_be_negative_reaches_below_zero() -> None:
    """Values around 0, some negative: the mean's interval holds 0; without a negative one it stops at 0."""
    values = np.random.default_rng(1).normal(0.0, 1.0, 80)
    middle, found = weighted_mean(values, np.ones(80))
    assert found is not None

    assert middle == pytest.approx(values.mean())
    assert found[0] < 0 < found[1]
    assert (found[0] + found[1]) / 2 == pytest.approx(middle)
    once = np.zeros(80)
    once[3] = 1.0
    _, low = weighted_mean(once, np.ones(80))
    assert low is not None
    assert low[0] == 0.0 < low[1]


def test_rates_are_counts_over_the_time() -> None:
    """40 a second for 10 s, evenly: 40 with no spread; below 20 counts no interval, without time no rate."""
    even = np.arange(400) / 40 + 1e-3

    assert rate(even, np.ones(400), 10.0) == (40.0, (40.0, 40.0))
    assert rate(even[:19], np.full(19, 2.0), 10.0) == (3.8, None)
    assert rate(even[:20], np.ones(20), 10.0)[1] is not None
    assert rate(even, np.ones(400), 0.0) == (0.0, None)


def test_the_mean_of_what_is_known() -> None:
    """NaN is left out; of nothing the mean is not known."""
    assert mean([1.0, math.nan, 3.0]) == 2.0
    assert math.isnan(mean([math.nan]))


def constant(arrivals_s: float, service_s: float, count: int) -> RequestColumns:
    """Arrivals evenly, one server, each served in turn."""
    came = np.arange(count) * arrivals_s
    begun = np.maximum(came, np.arange(count) * service_s)
    return made.requests(came, begun, begun + service_s, np.ones(count), admitted=begun)


def test_balance_of_even_traffic_is_arithmetic() -> None:
    """One a second, served in 2 s: half of them stay, so 0.5 a second are added; served in 0.5 s none stays."""
    growing, steady = trend(constant(1.0, 2.0, 4001)), trend(constant(1.0, 0.5, 4001))

    assert (growing.verdict, growing.stable, steady.verdict, steady.stable) == ("growing", False, "steady", True)
    assert growing.growth_per_s == pytest.approx(0.5, abs=0.01)
    assert growing.growth_share == pytest.approx(0.5, abs=0.01)
    assert growing.offered_per_s == steady.offered_per_s == 1.0
    assert growing.ci95 == pytest.approx((0.5, 0.5), abs=0.01)
    assert growing.reason.startswith("unstable: the backlog grows by 50.0% (+/- ")
    assert steady.reason == "the backlog keeps emptying or does not grow"


def test_balance_needs_fifty_requests_and_some_time() -> None:
    """49 are too few, 50 are not; 50 at one moment show no trend."""
    few, enough = trend(constant(1.0, 0.5, 49)), trend(constant(1.0, 0.5, 50))

    assert (few.verdict, enough.verdict) == ("unclear", "steady")
    assert few.reason == "49 requests are too few to see a trend; run at least 50"
    assert few.ci95 == (-math.inf, math.inf)
    assert math.isnan(few.growth_share)
    assert trend(constant(0.0, 0.5, 50)).verdict == "unclear"
