"""The price of repeated prefixes, by hand and against simulated arrivals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.pricing.cache_terms import CacheTerms, find_terms
from servewise.techniques.prefix import break_even_hit_rate, counted_bill, hit_rate_at, prompt_bill

shares = st.floats(0, 1)
terms_of = st.builds(
    CacheTerms,
    name=st.just("any"),
    title=st.just("any"),
    write_multiplier=st.floats(1, 3),
    read_multiplier=st.floats(0, 0.9),
    min_tokens=st.integers(0, 4096),
    granularity_tokens=st.integers(1, 256),
)


def test_the_studys_bill() -> None:
    """1,000 tokens in 1M calls a day at $3 a million: $3,000, or $300 when every token is read at a tenth."""
    plain = CacheTerms(name="study", title="study", write_multiplier=1.0, read_multiplier=0.1)
    bill = prompt_bill(prompt_tokens=1000, calls=1_000_000, usd_per_million=3.0, terms=plain, hit_rate=1.0)
    assert bill.prompt_tokens == 1_000_000_000
    assert bill.cost_usd == pytest.approx(3000)
    assert bill.cost_with_cache_usd == pytest.approx(300)
    assert bill.saved_usd == pytest.approx(2700)


def test_the_same_bill_under_real_terms_saves_nothing() -> None:
    """Anthropic's minimum is 1,024 tokens: the study's 1,000-token prompt is never cached there."""
    terms = find_terms("anthropic-5m")
    bill = prompt_bill(prompt_tokens=1000, calls=1_000_000, usd_per_million=3.0, terms=terms, hit_rate=1.0)
    assert bill.cost_with_cache_usd == bill.cost_usd


def test_write_fee_and_hit_rate_by_hand() -> None:
    """2,000 tokens, 1,500 of them the prefix, 90% hits at 1.25 and 0.1: 500 + 1,500 x (0.09 + 0.125) = 822.5 a call."""
    terms = find_terms("anthropic-5m")
    bill = prompt_bill(
        prompt_tokens=2000, calls=1000, usd_per_million=1.0, terms=terms, hit_rate=0.9, prefix_tokens=1500
    )
    assert bill.cost_with_cache_usd == pytest.approx(0.8225)
    assert bill.cached_tokens == pytest.approx(1_350_000)


@given(terms_of, shares, st.integers(1, 100_000))
def test_break_even_is_where_the_bills_meet(terms: CacheTerms, hit_rate: float, tokens: int) -> None:
    """Above the break-even hit rate the cache never costs more, below it never less."""
    bill = prompt_bill(prompt_tokens=tokens, calls=10, usd_per_million=3, terms=terms, hit_rate=hit_rate)
    slack = 1e-9 * bill.cost_usd
    if hit_rate >= break_even_hit_rate(terms):
        assert bill.saved_usd >= -slack
    else:
        assert bill.saved_usd <= slack


@given(terms_of, shares, shares)
def test_more_hits_never_cost_more(terms: CacheTerms, one: float, other: float) -> None:
    """The bill falls with the hit rate."""
    low, high = sorted((one, other))

    def cost(hit_rate: float) -> float:
        return prompt_bill(
            prompt_tokens=5000, calls=3, usd_per_million=2, terms=terms, hit_rate=hit_rate
        ).cost_with_cache_usd

    assert cost(high) <= cost(low) * (1 + 1e-12)


def test_counted_bill_by_hand() -> None:
    """1M tokens of which 366,400 are found, at $3, 1.25 and 0.1: 3 x (0.03664 + 0.6336 x 1.25)."""
    bill = counted_bill(
        prompt_tokens=1_000_000, reusable_tokens=366_400, usd_per_million=3, terms=find_terms("anthropic-5m")
    )
    assert bill.cost_with_cache_usd == pytest.approx(3 * (0.03664 + 0.6336 * 1.25))


def simulated_hit_rate(rate_per_s: float, ttl_s: float, refreshed: bool, calls: int = 100_000) -> float:
    """The share of Poisson arrivals that find an entry, counted one by one."""
    arrivals = np.cumsum(np.random.default_rng(11).exponential(1 / rate_per_s, calls))
    expires, hits = -math.inf, 0
    for now in arrivals:
        hit = now <= expires
        hits += hit
        if refreshed or not hit:
            expires = now + ttl_s
    return hits / calls


@pytest.mark.parametrize("refreshed", [True, False])
@pytest.mark.parametrize("per_ttl", [0.1, 1.0, 5.0])
def test_hit_rates_of_poisson_arrivals(per_ttl: float, refreshed: bool) -> None:
    """Both lifetimes' closed forms lie within 1 percentage point of 100,000 simulated arrivals (4 sigma is 0.7)."""
    terms = CacheTerms(name="t", title="t", write_multiplier=1, read_multiplier=0.1, ttl_s=300.0, refreshed=refreshed)
    expected = hit_rate_at(per_ttl / 300, terms)
    assert expected == pytest.approx(simulated_hit_rate(per_ttl / 300, 300.0, refreshed), abs=0.01)


def test_without_promised_lifetime_everything_hits() -> None:
    """Terms that state no lifetime are taken as endless."""
    assert hit_rate_at(1e-9, find_terms("openai-gpt-5")) == 1.0


@pytest.mark.parametrize(
    ("field", "value"),
    [("hit_rate", 1.1), ("hit_rate", float("nan")), ("usd_per_million", -1), ("calls", -1), ("prefix_tokens", 2000)],
)
def test_impossible_bills_are_refused(field: str, value: float) -> None:
    """A hit rate above 1, a negative price or count, a prefix longer than its prompt are wrong input."""
    given_numbers = {"prompt_tokens": 1000, "calls": 1, "usd_per_million": 1.0, "hit_rate": 0.5} | {field: value}
    with pytest.raises(InputError):
        prompt_bill(terms=find_terms("anthropic-5m"), **given_numbers)  # type: ignore[arg-type]
