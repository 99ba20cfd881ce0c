"""The steady window, against runs whose truth is known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measure.bench import made

from servewise.measure.bench.mser import mser5, transient
from servewise.measure.bench.summary import window_summary
from servewise.measure.bench.window import closed_window, open_window
from servewise.metrics import latency
from servewise.metrics.slo import parse_slo
from servewise.records.columns import FAILED, RequestColumns


@pytest.mark.parametrize("streams", [1, 3, 8])
@pytest.mark.parametrize("rounds", [2, 5, 40])
def test_a_closed_loop_of_exact_service_has_exactly_its_throughput(streams: int, rounds: int) -> None:
    """c streams of service T complete c / T requests and c N / T tokens a second, whatever the run's ragged ends."""
    service, tokens = 2.0, 9
    requests = made.deterministic(streams, rounds, service=service, tokens=tokens)
    summary = window_summary(requests, closed_window(requests, streams), None)

    assert summary.requests_per_s == pytest.approx(streams / service, rel=1e-9)
    assert summary.ttft.p50 == pytest.approx(0.2)
    assert summary.output_tokens_per_s == pytest.approx(streams * tokens / service, rel=0.35 / rounds)


def test_littles_law_holds_in_the_window() -> None:
    """N = X R: streams = throughput x mean latency, for random services (Little 1961), within its own interval."""
    rng, streams = np.random.default_rng(5), 6
    rows: list[tuple[float, float, float, int]] = []
    for _ in range(streams):
        now = 0.0
        while now < 600:
            service = float(rng.gamma(2.0, 0.5))
            rows.append((now, now + service / 4, now + service, 8))
            now += service
    requests = made.run(rows)
    window = closed_window(requests, streams)
    summary = window_summary(requests, window, None)

    low, high = summary.ci95["requests_per_s"]
    assert low * summary.e2e.mean * 0.98 <= streams <= high * summary.e2e.mean * 1.02
    assert summary.requests_per_s * summary.e2e.mean == pytest.approx(streams, rel=0.03)


def test_the_ramp_and_the_drain_of_a_closed_loop_are_left_out() -> None:
    """Begins when the last stream has sent, ends when the first runs dry: here 4 s and 9 s, known by construction."""
    rows = [(float(s), s + 0.1, float(s) + 5, 3) for s in range(5)] + [
        (float(s), s + 0.1, s + 4.0, 3) for s in range(5, 10)
    ]
    window = closed_window(made.run(rows), 5)

    assert window.full_s == window.start_s == 4
    assert window.end_s == 9
    assert sorted(window.rows.tolist()) == [0, 1, 2, 3, 4, 5]
    assert window.settled is None


def test_a_slow_beginning_is_cut_and_said() -> None:
    """40 requests of 10x TTFT, then 400 steady ones: MSER-5 cuts the 40, give or take a batch of 5."""
    requests, slow = RequestColumns(), 40
    rows = [(t / 10, t / 10 + (2.0 if t < slow else 0.2), t / 10 + 4.0, 9) for t in range(440)]
    requests = made.run(rows)
    window = open_window(requests)

    assert window.settled
    assert slow <= window.cut <= slow + 5
    assert window_summary(requests, window, None).ttft.p99 == pytest.approx(0.2)
    assert f"{window.cut} requests cut by MSER-5" in window.rule


def test_a_run_that_drifts_throughout_is_called_unsettled() -> None:
    """A TTFT that grows all along has no steady state, and nothing is cut to make it look as if."""
    rows = [(float(t), t + 0.1 * (1 + t), t + 100.0, 9) for t in range(200)]
    window = open_window(made.run(rows))

    assert window.settled is False
    assert window.cut == 0


def test_an_open_window_holds_every_arrival_however_slow() -> None:
    """A request that ends long after the last arrival is in the sample; its tokens after that are not in the rate."""
    rows = [(t / 8, t / 8 + 0.125, t / 8 + 0.25, 2) for t in range(20)] + [(1.5, 30.0, 60.0, 2)]
    requests = made.run(rows)
    window = open_window(requests)
    summary = window_summary(requests, window, parse_slo("e2e_p95<=1s"))

    assert summary.completed == 20  # the first arrival starts the clock
    assert summary.requests_per_s == pytest.approx(20 * 8 / 19)
    assert summary.e2e.p99 > 40
    assert window.end_s == 19 / 8
    assert summary.output_tokens_per_s == pytest.approx(37 * 8 / 19, rel=1e-9)
    assert summary.goodput_per_s == pytest.approx(19 * 8 / 19)


@pytest.mark.parametrize("count", [2, 10, 200])
def test_constant_arrivals_have_exactly_their_rate(count: int) -> None:
    """One arrival each quarter of a second is 4 a second, of however few: gaps are counted, not posts."""
    requests = made.run((t / 4, t / 4 + 0.05, t / 4 + 0.125, 2) for t in range(count))

    assert window_summary(requests, open_window(requests), None).requests_per_s == pytest.approx(4, rel=1e-7)


def test_failed_requests_are_in_the_window_but_in_no_latency() -> None:
    """They count as failures, give no TTFT and no tokens."""
    requests = made.deterministic(2, 10)
    for turn in range(5):
        made.add(requests, 100 + turn, 1.0 + turn, 1.1 + turn, 1.2 + turn, 50, FAILED)
    summary = window_summary(requests, closed_window(requests, 2), None)

    assert summary.failed == 5
    assert summary.ttft.p99 == pytest.approx(0.2)
    assert summary.output_tokens_per_s == pytest.approx(18, rel=0.05)


@pytest.mark.parametrize("streams", [1, 4])
def test_a_run_without_a_full_load_has_an_empty_window(streams: int) -> None:
    """Fewer requests than streams, or none at all, is no measurement and no error."""
    requests = made.run([(0.0, 0.1, 1.0, 3)] * (streams - 1))
    window = closed_window(requests, streams)
    summary = window_summary(requests, window, None)

    assert window.duration_s == 0
    assert summary.completed == 0
    assert math.isnan(summary.ttft.p50)
    assert open_window(RequestColumns()).duration_s == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 5), st.floats(0, 20), st.integers(1, 5)), max_size=40),
    st.integers(1, 5),
)
def test_no_run_breaks_the_window(rows: list[tuple[float, float, float, int]], streams: int) -> None:
    """Any run: the window lies within the run, its rows are rows, and no rate is negative or infinite."""
    requests = made.run((sent, sent + first, sent + first + more, tokens) for sent, first, more, tokens in rows)
    for window in (closed_window(requests, streams), open_window(requests)):
        summary = window_summary(requests, window, None)

        assert window.start_s <= window.end_s
        assert len(set(window.rows.tolist())) == len(window.rows) <= len(requests)
        assert 0 <= summary.output_tokens_per_s < math.inf
        assert summary.completed <= len(window.rows)


def test_mser_against_the_definition_written_out() -> None:
    """The cumulative sums give the same cut as the formula of White, Cobb and Spratt, computed term by term."""
    rng = np.random.default_rng(3)
    for size in (60, 131, 400):
        values = rng.exponential(size=size) + np.exp(-np.arange(size) / 20) * 5
        batches = values[: size // 5 * 5].reshape(-1, 5).mean(axis=1)
        n = len(batches)
        errors = [float(((batches[d:] - batches[d:].mean()) ** 2).sum()) / (n - d) ** 2 for d in range(n // 2 + 1)]

        assert mser5(values).first == (5 * int(np.argmin(errors)) if np.argmin(errors) < n // 2 else 0)


def test_rows_of_a_window_keep_their_own_token_times() -> None:
    """Cutting rows moves no token time or error to another row."""
    requests = made.deterministic(2, 30)
    window = closed_window(requests, 2)
    summary = window_summary(requests, window, None)

    assert summary.tpot.p50 == pytest.approx(0.8 / 8)
    assert summary.itl.p50 == pytest.approx(0.8 / 8)
    assert len(latency.ints(requests.id)[window.rows]) == summary.completed


def test_a_queue_in_balance_loses_nothing_to_the_cut() -> None:
    """M/D/1 at load 0.5: over 60 runs the mean with its cut stays within 2% of that without; MSER-5 alone loses 3%."""
    rng, means = np.random.default_rng(11), []
    for _ in range(60):
        gaps, waits = rng.exponential(2.0, 499), [0.0]
        for gap in gaps:
            waits.append(max(waits[-1] + 1.0 - gap, 0.0))
        values = np.array(waits) + 1.0
        whole, kept, alone = values, values[transient(values).first :], values[mser5(values).first :]
        means.append([float(each.mean()) for each in (whole, kept, alone)])
    whole_mean, kept_mean, alone_mean = np.mean(means, axis=0)

    assert kept_mean == pytest.approx(whole_mean, rel=0.01)
    assert alone_mean < whole_mean * 0.99


def test_a_slow_start_in_noise_is_still_cut() -> None:
    """Values that begin at 3 times their mean and decay: what is left is within 4% of the truth, uncut 16% off."""
    rng, left, uncut = np.random.default_rng(12), [], []
    for _ in range(40):
        values = (1 + 2 * np.exp(-np.arange(500) / 40)) * rng.gamma(4, 0.25, 500)
        left.append(float(values[transient(values).first :].mean()))
        uncut.append(float(values.mean()))

    assert np.mean(left) == pytest.approx(1, abs=0.04)
    assert np.mean(uncut) > 1.12
