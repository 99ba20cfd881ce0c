"""SLOs: how they are written, when they hold, and by how much they do not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics import made

from servewise.errors import InputError
from servewise.metrics.sample import EMPTY
from servewise.metrics.slo import METRICS, PERCENTILES, Bound, Slo, parse_slo


@pytest.mark.parametrize(
    "text",
    [
        "ttft_p95<=1s, tpot_p95<=50ms",
        " ttft_p95 < 1 s ,tpot_p95≤50ms",
        "TTFT_P95<=1000ms;tpot_p95<=50000us",
        "ttft_p95<=1e0s,tpot_p95<=50000µs,",
    ],
)
def test_ways_to_write_one_slo(text: str) -> None:
    """Spaces, cases, signs, units and separators all give the same two bounds."""
    first, second = parse_slo(text).bounds
    assert (first, second.metric, second.percentile) == (Bound("ttft", "p95", 1.0), "tpot", "p95")
    assert second.limit_s == pytest.approx(0.05, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "at least one bound"),
        (" , ", "at least one bound"),
        ("ttft_p95<=1", "cannot read"),
        ("ttft_p95>=1s", "cannot read"),
        ("ttft<=1s", "cannot read"),
        ("ttft_p95<=1s tpot_p95<=2s", "cannot read"),
        ("ttfs_p95<=1s", "unknown latency 'ttfs'.*ttft"),
        ("ttft_p96<=1s", "unknown percentile 'p96'.*p95"),
        ("ttft_p95<=1h", "unknown unit of time 'h'"),
        ("ttft_p95<=0s", "above 0"),
        ("ttft_p95<=-1s", "above 0"),
        ("ttft_p95<=1e400s", "above 0"),
        ("ttft_p95<=1.2.3s", "above 0"),
        ("ttft_p95<=1s,ttft_p95<=2s", "twice"),
        ("ttft_p95<=nans", "cannot read"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(text: str, what: str) -> None:
    """Missing units, other signs, unknown names and senseless limits are each refused with what to write."""
    with pytest.raises(InputError, match=what):
        parse_slo(text)


@given(st.text(max_size=40))
def test_any_text_is_an_slo_or_an_input_error(text: str) -> None:
    """No text is a traceback."""
    try:
        found = parse_slo(text)
    except InputError:
        return
    assert all(bound.limit_s > 0 for bound in found.bounds)


BOUNDS = st.builds(
    Bound, st.sampled_from(METRICS), st.sampled_from(PERCENTILES), st.sampled_from([0.05, 1.0, 2.5, 0.0138])
)


@given(st.lists(BOUNDS, min_size=1, max_size=5, unique_by=lambda each: (each.metric, each.percentile)))
def test_an_slo_is_read_back_from_its_own_text(bounds: list[Bound]) -> None:
    """What is printed can be typed."""
    again = parse_slo(str(Slo(tuple(bounds))))
    assert [(each.metric, each.percentile) for each in again.bounds] == [(e.metric, e.percentile) for e in bounds]
    assert [each.limit_s for each in again.bounds] == pytest.approx([each.limit_s for each in bounds])


def test_holds_up_to_and_with_the_limit() -> None:
    """A latency at its limit holds, one above it does not."""
    slo = parse_slo("ttft_p95<=1s")
    assert slo.holds(made.summary(made.percentiles(1.0)))
    assert not slo.holds(made.summary(made.percentiles(1.0000001)))


def test_violations_come_worst_first_with_their_factor() -> None:
    """At 2 s, bounds of 1 s and 0.5 s are broken by 2 x and 4 x, the worse first; one of 3 s holds."""
    broken = parse_slo("ttft_p95<=1s, tpot_p50<=500ms, e2e_p99<=3s").violations(made.summary(made.percentiles(2.0)))
    assert [(each.bound.metric, each.factor) for each in broken] == [("tpot", 4.0), ("ttft", 2.0)]
    assert str(broken[0]) == "tpot_p50 is 2.00 s, 4.00 x its limit of 500 ms"


def test_a_run_in_which_nothing_completed_meets_nothing() -> None:
    """Without a completed request no bound holds, and the violation says that it is unknown."""
    slo = parse_slo("ttft_p95<=1s, tpot_p95<=1s")
    broken = slo.violations(made.summary(EMPTY, completed=0))
    assert len(broken) == 2
    assert all(math.isnan(each.value_s) and "unknown" in str(each) for each in broken)


def test_answers_of_one_token_break_no_tpot_bound() -> None:
    """Where every answer is one token there is no TPOT, and a bound on it is kept."""
    assert parse_slo("tpot_p95<=1ms").holds(made.summary(EMPTY, completed=10))


def test_a_request_must_keep_the_loosest_of_its_bounds() -> None:
    """With p50 <= 0.5 s and p99 <= 2 s one request may take 2 s; a metric without bound may take for ever."""
    slo = parse_slo("ttft_p50<=0.5s, ttft_p99<=2s")
    assert (slo.limit_s("ttft"), slo.limit_s("tpot")) == (2.0, math.inf)
