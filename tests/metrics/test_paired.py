"""Two runs of the same requests: pairs, and intervals that lose the noise that both share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.metrics import made

from servewise.metrics.comparison import Comparison, compare
from servewise.metrics.paired import compare_paired
from servewise.metrics.pairing import Matched, Pairs, pairs_of, whole
from servewise.metrics.summary import summarise
from servewise.records.columns import FAILED, RequestColumns, TokenTimes
from servewise.records.selection import selected


def run(speed: float, *, noise: int, count: int = 400) -> RequestColumns:
    """One request after another, 4 tokens each, service times of a wide spread, all of it ``speed`` times as long."""
    service = speed * np.random.default_rng(7).lognormal(0, 1, count)
    service *= np.random.default_rng(noise).lognormal(0, 0.01, count)
    end = np.cumsum(service)
    start = end - service
    found = made.requests(start, start + 0.25 * service, end, np.full(count, 4))
    found.prompt_tokens = made.ints(10 + np.random.default_rng(7).integers(0, 90, count))
    return found


def compared(a: RequestColumns, b: RequestColumns) -> dict[str, Comparison]:
    """The paired comparison by metric."""
    parts = whole(a), whole(b)
    pairs = pairs_of(*parts, same_seed=True)
    assert isinstance(pairs, Pairs)
    rows = compare_paired([Matched(*parts, pairs)], (summarise(a), summarise(b)))
    return {row.metric: row for row in rows}


def test_a_true_factor_is_found_where_unpaired_runs_leave_it_unclear() -> None:
    """A run 10% slower request by request: paired intervals hold 1.1 within 4%, unpaired ones reach over 10%."""
    a, b = run(1.0, noise=1), run(1.1, noise=2)
    paired = compared(a, b)
    apart = {row.metric: row for row in compare(summarise(a), summarise(b))}
    for metric in ("ttft_mean", "ttft_p50", "tpot_p50", "e2e_p90"):
        low, high = paired[metric].ci95 or (0.0, 9.0)
        assert 1.06 < low < paired[metric].ratio < high < 1.14
        assert paired[metric].verdict == "worse"
        wide = apart[metric].ci95
        assert wide is not None
        assert wide[1] - wide[0] > 0.1
        assert apart[metric].verdict == "unclear"


def test_rates_are_paired_by_time() -> None:
    """Throughput of the slower run is 1 / 1.1 of the other's, and its paired interval holds that within 2%."""
    row = compared(run(1.0, noise=1), run(1.1, noise=2))["output_tokens_per_s"]
    assert row.paired
    assert row.ci95 is not None
    assert 0.89 < row.ci95[0] <= 1 / 1.1 <= row.ci95[1] < 0.93
    assert row.verdict == "worse"


def test_a_run_against_itself_is_the_same_beyond_doubt() -> None:
    """Every metric of a run paired with itself has the ratio 1, the interval 1 to 1 where it has one."""
    rows = compared(run(1.0, noise=1), run(1.0, noise=1)).values()
    assert {row.ratio for row in rows} == {1.0}
    assert {row.ci95 for row in rows} <= {(1.0, 1.0), None}
    assert {row.verdict for row in rows} == {"same"}


def test_a_percentile_of_too_few_requests_gets_no_interval() -> None:
    """60 requests say nothing of p99, nor 80 of p95 (4 values beyond it); 100 do of p95 (5)."""
    rows = compared(run(1.0, noise=1, count=60), run(2.0, noise=2, count=60))
    assert (rows["ttft_p99"].ci95, rows["ttft_p99"].verdict) == (None, "unclear")
    assert rows["ttft_p50"].verdict == "worse"
    for count, known in ((80, False), (100, True)):
        found = compared(run(1.0, noise=1, count=count), run(2.0, noise=2, count=count))
        assert (found["ttft_p95"].ci95 is not None) is known


def test_gaps_are_resampled_with_their_requests() -> None:
    """Token times that are 1.5 times as far apart in b: ITL is worse by 1.5, within a few percent."""
    a, b = run(1.0, noise=1), run(1.5, noise=1)
    for each in (a, b):
        each.token_times = TokenTimes()
        for start, end in zip(each.scheduled_s, each.end_s, strict=True):
            each.token_times.append(np.linspace(start, end, 5)[1:])
    row = compared(a, b)["itl_mean"]
    assert row.paired
    assert row.ci95 == pytest.approx((1.5, 1.5))


def test_pairs_are_in_order_of_schedule_whatever_the_rows() -> None:
    """Rows stand in order of ending, which differs: pairs join the same ids, in the order of run a's schedule."""
    a = run(1.0, noise=1, count=30)
    b = selected(a, np.arange(29, -1, -1))
    pairs = pairs_of(whole(a), whole(b), same_seed=True)
    assert isinstance(pairs, Pairs)
    assert pairs.a.tolist() == list(range(30))
    assert pairs.b.tolist() == list(range(29, -1, -1))


def test_a_template_counted_by_one_server_alone_does_not_part_the_runs() -> None:
    """Prompts that are all 21 tokens longer in b are the same prompts; lengths that differ otherwise are not."""
    a, b = run(1.0, noise=1), run(1.0, noise=2)
    b.prompt_tokens = made.ints(np.array(b.prompt_tokens) + 21)
    assert isinstance(pairs_of(whole(a), whole(b), same_seed=False), Pairs)
    b.prompt_tokens[5] += 1
    assert pairs_of(whole(a), whole(b), same_seed=True) == "their prompts are not of the same lengths"


def test_equal_lengths_alone_do_not_make_requests_the_same() -> None:
    """Prompts all of one length show nothing: without one seed that both state the runs stay apart."""
    a, b = run(1.0, noise=1), run(1.0, noise=2)
    for each in (a, b):
        each.prompt_tokens = made.ints(np.full(len(each), 128))
    assert isinstance(pairs_of(whole(a), whole(b), same_seed=True), Pairs)
    found = pairs_of(whole(a), whole(b), same_seed=False)
    assert isinstance(found, str)
    assert "nothing shows" in found


def test_runs_of_which_few_completed_in_both_are_not_paired() -> None:
    """100 of 400 failed in b: the pairs would be those that b found easy."""
    a, b = run(1.0, noise=1), run(1.0, noise=2)
    b.status = made.ints(np.where(np.arange(400) < 100, FAILED, 0))
    assert pairs_of(whole(a), whole(b), same_seed=True) == "300 requests completed in both, of 400 and 300"


def test_a_part_leaves_the_rest_out() -> None:
    """Only the rows of the part are paired."""
    a, b = whole(run(1.0, noise=1)), whole(run(1.0, noise=2))
    pairs = pairs_of(replace(a, rows=np.arange(50, 400)), replace(b, rows=np.arange(60, 400)), same_seed=True)
    assert isinstance(pairs, Pairs)
    assert pairs.a.min() == 60


def test_repeats_are_compared_together() -> None:
    """Three repeats of 100 requests, b slower by 1.5 in each: one interval from 300 pairs, within 1% of 1.5."""
    matched = []
    for noise in range(3):
        a, b = whole(run(1.0, noise=noise, count=100)), whole(run(1.5, noise=9 + noise, count=100))
        pairs = pairs_of(a, b, same_seed=True)
        assert isinstance(pairs, Pairs)
        matched.append(Matched(a, b, pairs))
    summaries = summarise(matched[0].a.requests), summarise(matched[0].b.requests)
    rows = {row.metric: row for row in compare_paired(matched, summaries)}
    for metric in ("ttft_mean", "e2e_mean"):
        assert rows[metric].ci95 == pytest.approx((1.5, 1.5), rel=0.01)
