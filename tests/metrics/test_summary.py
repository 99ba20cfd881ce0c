"""The summary of a run, by hand and by Little's law; replicas pooled by Student's t."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.metrics import made

from servewise.errors import InputError
from servewise.metrics.slo import parse_slo
from servewise.metrics.summary import pool, summarise
from servewise.records.columns import FAILED, REJECTED, UNFINISHED, RequestColumns, StepColumns, TokenTimes


def test_a_run_by_hand() -> None:
    """Five requests over 10 s, of which 2 complete with 11 tokens each: every count, rate and mean by hand."""
    run = made.requests(
        scheduled=[0.0, 2.0, 3.0, 4.0, 5.0],
        first=[1.0, 4.0, np.nan, np.nan, np.nan],
        end=[2.0, 10.0, 3.0, np.nan, np.nan],
        output=[11, 11, 0, 0, 0],
        status=[0, 0, REJECTED, UNFINISHED, FAILED],
    )
    steps = made.steps([(0.0, 1.0, 1, 0, 1), (1.0, 1.0, 10, 1, 1), (4.0, 6.0, 9, 3, 2)])
    found = summarise(run, steps, slots=4, slo=parse_slo("ttft_p95<=1s"))
    assert (found.completed, found.rejected, found.unfinished, found.failed) == (2, 1, 1, 1)
    assert found.duration_s == 10.0
    assert (found.requests_per_s, found.output_tokens_per_s, found.goodput_per_s) == (0.2, 2.2, 0.1)
    assert (found.ttft.mean, found.e2e.mean) == (1.5, 5.0)
    assert found.tpot.mean == pytest.approx(0.35)
    assert found.utilisation == pytest.approx((1 * 1 + 1 * 10 + 2 * 9) / (4 * 20))


def test_the_studys_utilisation_of_static_batches() -> None:
    """Of 8 slots held by a batch of lengths 1..8 for 8 steps, 36 of 64 slot-steps make a token: 0.5625."""
    rows = [(float(step), 1.0, 1, 8 - step, 8 - step) for step in range(8)]
    run = made.requests([0.0] * 8, [1.0] * 8, [8.0] * 8, list(range(1, 9)))
    assert summarise(run, made.steps(rows), slots=8).utilisation == 36 / 64


def test_measured_runs_take_itl_from_token_times() -> None:
    """With token times, ITL is theirs although there are no steps; utilisation is then unknown."""
    run = made.requests([0.0], [1.0], [3.0], [3])
    run.token_times = TokenTimes()
    run.token_times.append([1.0, 1.5, 3.0])
    found = summarise(run, StepColumns(), slots=1)
    assert (found.itl.n, found.itl.mean) == (2, 1.0)
    assert math.isnan(found.utilisation)


def test_a_late_client_shows_beside_the_schedule() -> None:
    """Sent 0.5 s late, a first token at 2 s is 2 s from the schedule and 1.5 s from sending; on time they are one."""
    late = made.requests([0.0], [2.0], [3.0], [3], sent=[0.5])
    found = summarise(late, StepColumns(), slots=1)
    assert (found.ttft.mean, found.ttft_from_sent.mean) == (2.0, 1.5)
    on_time = summarise(made.requests([0.0], [2.0], [3.0], [3]), StepColumns(), slots=1)
    assert on_time.ttft_from_sent == on_time.ttft
    assert pool([found, found]).ttft_from_sent.mean == 1.5


def test_nothing_at_all_is_a_summary_of_nothing() -> None:
    """An empty run has no rates and no latencies, and does not fail."""
    found = summarise(RequestColumns(), StepColumns(), slots=1, slo=parse_slo("ttft_p95<=1s"))
    assert (found.completed, found.requests_per_s, found.goodput_per_s, found.duration_s) == (0, 0.0, 0.0, 0.0)
    assert found.ttft.n == 0


def test_no_slots_are_refused() -> None:
    """Utilisation over no slots is a mistake."""
    with pytest.raises(InputError, match="slot"):
        summarise(RequestColumns(), StepColumns(), slots=0)


def test_littles_law_on_the_records() -> None:
    """L = lambda W: the time average of requests in the system is their rate x mean end-to-end latency, exactly."""
    rng = np.random.default_rng(3)
    arrival = np.sort(rng.uniform(0, 1000, 2000))
    end = arrival + rng.exponential(5.0, 2000)
    found = summarise(made.requests(arrival, arrival, end, np.full(2000, 2)), StepColumns(), slots=1)
    events = np.sort(np.concatenate((arrival, end)))
    change = np.where(np.isin(events, arrival), 1, -1)
    inside = float(np.cumsum(change)[:-1] @ np.diff(events)) / (events[-1] - events[0])
    assert inside == pytest.approx(found.requests_per_s * found.e2e.mean, rel=1e-9)


def test_percentiles_agree_with_numpy_on_a_run() -> None:
    """TTFT and TPOT percentiles of a random run are NumPy's of the same differences."""
    rng = np.random.default_rng(4)
    arrival = np.cumsum(rng.exponential(1, 500))
    first, tokens = arrival + rng.exponential(1, 500), rng.integers(1, 50, 500)
    end = first + (tokens - 1) * rng.uniform(0.01, 0.05, 500)
    found = summarise(made.requests(arrival, first, end, tokens), StepColumns(), slots=1)
    more = tokens > 1
    assert found.ttft.p95 == pytest.approx(np.quantile(first - arrival, 0.95))
    assert found.tpot.p90 == pytest.approx(np.quantile((end - first)[more] / (tokens - 1)[more], 0.9))
    assert found.tpot.n == more.sum()


def test_pooling_is_means_with_students_interval() -> None:
    """Means 11, 12, 16 pool to 13 +/- t(0.975; 2) s / sqrt(3), for latencies and rates; counts add up."""
    values = [11.0, 12.0, 16.0]
    found = pool([made.summary(made.percentiles(value, 0.1), goodput=value, rate=value) for value in values])
    half = stats.t.ppf(0.975, 2) * np.std(values, ddof=1) / math.sqrt(3)
    assert found.ttft.p95 == 13.0
    assert found.ttft.ci95["p95"] == pytest.approx((13 - half, 13 + half))
    assert (found.goodput_per_s, found.requests_per_s, found.output_tokens_per_s) == (13.0, 13.0, 1300.0)
    assert found.ci95["requests_per_s"] == pytest.approx((13 - half, 13 + half))
    assert (found.completed, found.rejected, found.unfinished, found.preemptions) == (300, 3, 6, 9)
    assert (found.ttft.n, found.duration_s) == (3000, 50.0)


def test_two_unlike_seeds_give_no_time_or_rate_below_zero() -> None:
    """Student's interval of 0.1 and 2 reaches to -11; no latency, rate or share is below zero."""
    found = pool([made.summary(made.percentiles(value, 0.1), goodput=value, rate=value) for value in (0.1, 2.0)])
    pairs = [*found.ttft.ci95.values(), *found.ci95.values()]
    assert min(low for low, _ in pairs) == 0.0
    assert found.ci95["requests_per_s"][1] > 10.0


def test_pooling_one_run_keeps_its_own_intervals() -> None:
    """One summary is itself; none is refused."""
    one = made.summary(made.percentiles(1.0, 0.1))
    assert pool([one]) is one
    with pytest.raises(InputError):
        pool([])


def test_pooling_leaves_out_what_is_unknown() -> None:
    """A replica in which nothing completed says nothing about latency; goodput without an SLO stays None."""
    empty = summarise(RequestColumns(), StepColumns(), slots=1)
    found = pool([made.summary(made.percentiles(1.0, 0.1)), empty, made.summary(made.percentiles(3.0, 0.1))])
    assert (found.ttft.mean, found.goodput_per_s) == (2.0, None)
    assert found.utilisation == 0.5


def test_every_rate_of_a_run_has_an_interval_that_holds_it() -> None:
    """A run of 2,000 requests gives intervals for throughput, goodput and utilisation, around their values."""
    rng = np.random.default_rng(5)
    arrival = np.cumsum(rng.exponential(0.5, 2000))
    run = made.requests(arrival, arrival + 0.5, arrival + 1 + rng.exponential(1, 2000), np.full(2000, 20))
    rows = [(i * 0.1, 0.1, 1, active, active) for i, active in enumerate(rng.integers(1, 8, 10_000).tolist())]
    found = summarise(run, made.steps(rows), slots=8, slo=parse_slo("e2e_p95<=2s"))
    assert set(found.ci95) == {"requests_per_s", "output_tokens_per_s", "goodput_per_s", "utilisation"}
    for name, (low, high) in found.ci95.items():
        assert low < getattr(found, name) < high
    assert found.ci95["requests_per_s"][0] < 2.0 < found.ci95["requests_per_s"][1]
