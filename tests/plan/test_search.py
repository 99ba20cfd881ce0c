"""The highest rate against closed forms of queueing theory."""

from __future__ import annotations

import math

import pytest
from tests.plan.made import FlatStep, fixed, llama_13b, poisson, server

from servewise.batching.policies import Continuous, Static
from servewise.metrics.slo import parse_slo
from servewise.plan.search import Behind, Highest, highest_above, highest_rate


def test_mean_wait_of_md1() -> None:
    """Service of exactly 1 s, one at a time (M/D/1): a mean wait of rho / (2 (1 - rho)) <= 1 s holds up to rho = 2/3.

    TTFT is the wait and the one step of a one-token answer: 2 s at the limit. 20,000 arrivals leave the mean wait a
    standard error of some 4%, of which rho takes a third.
    """
    one = server(FlatStep(1.0), Continuous(max_sequences=1))
    found = highest_rate(one, fixed(20_000, 1, 1), parse_slo("ttft_mean<=2s"))

    assert found.rate_per_s == pytest.approx(2 / 3, rel=0.05)


def test_without_waiting_the_ceiling_is_saturation() -> None:
    """An SLO that hardly binds is kept nearly up to saturation, and never beyond it."""
    one = server(llama_13b())
    found = highest_rate(one, poisson(1500), parse_slo("ttft_p95<=1000s"))

    assert 0.9 * found.knee.middle_per_s < found.rate_per_s <= found.knee.middle_per_s


@pytest.mark.parametrize("guess", [None, 0.5, 1.5, 4.0, 40.0])
def test_the_guess_does_not_matter(guess: float | None) -> None:
    """From whatever rate the search starts, it ends within its precision of the same."""
    one, traffic, slo = server(llama_13b()), poisson(600), parse_slo("tpot_p95<=25ms, ttft_p95<=1s")
    plain = highest_rate(one, traffic, slo).rate_per_s

    assert highest_rate(one, traffic, slo, guess).rate_per_s == pytest.approx(plain, rel=0.045)


def test_the_rate_was_seen_to_hold() -> None:
    """The summary that comes with the rate keeps the SLO."""
    slo = parse_slo("tpot_p95<=25ms, ttft_p95<=1s")
    found = highest_rate(server(llama_13b()), poisson(600), slo)

    assert slo.holds(found.summary)
    assert found.summary.completed == 600


def test_what_never_holds_is_zero() -> None:
    """Steps of 13 ms never make a token in 10 ms: no rate, and the summary of the lowest tried says why."""
    slo = parse_slo("tpot_p50<=10ms")
    found = highest_rate(server(llama_13b()), poisson(300), slo)

    assert found.rate_per_s == 0.0
    assert slo.violations(found.summary)
    assert found.lowest_per_s < 0.05 * found.knee.middle_per_s


def test_static_holds_below_saturation_and_not_near_zero() -> None:
    """A static batch that never fills waits for ever: found is a rate at which batches fill soon enough."""
    slo = parse_slo("ttft_p95<=20s")
    found = highest_rate(server(llama_13b(), Static(8)), poisson(800), slo)

    assert slo.holds(found.summary)
    assert found.rate_per_s > 8 / 20 / 4


def test_more_bandwidth_never_lowers_the_rate() -> None:
    """Decode is memory-bound: twice the bandwidth keeps the SLO at least up to the same rate."""
    slo = parse_slo("tpot_p95<=40ms, ttft_p95<=2s")
    rates = [
        highest_rate(server(llama_13b(bandwidth)), poisson(500), slo).rate_per_s for bandwidth in (1e12, 2e12, 4e12)
    ]

    assert rates == sorted(rates)
    assert all(math.isfinite(rate) and rate > 0 for rate in rates)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999, 1.001, 1.5, 20.0])
def test_a_search_for_more_ends_when_there_is_no_more(share: float) -> None:
    """Above what is wanted the very rate of a whole search is found; else that it lies below, in no more runs."""
    one, traffic, slo = server(llama_13b()), poisson(300), parse_slo("tpot_p95<=25ms, ttft_p95<=1s")
    whole = highest_rate(one, traffic, slo)
    found = highest_above(whole.rate_per_s * share, one, traffic, slo, possible_per_s=100.0)

    assert found.runs <= whole.runs
    if share < 1:
        assert isinstance(found, Highest)
        assert found.rate_per_s == whole.rate_per_s
    else:
        assert share < 1.03 or isinstance(found, Behind)
        if isinstance(found, Behind):
            assert whole.rate_per_s <= found.most_per_s <= whole.rate_per_s * share
