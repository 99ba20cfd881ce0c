"""The study's prompt-caching arithmetic."""

from __future__ import annotations

import pytest

from servewise.pricing.cache_terms import find_terms
from servewise.study.prompt_caching import bill, prompt_caching_table


def test_three_thousand_dollars_without_a_cache() -> None:
    """1,000 tokens x 1M calls at $3 a million are a billion tokens and $3,000 a day."""
    assert bill().prompt_tokens == 10**9
    assert bill().cost_usd == pytest.approx(3000)


def test_three_hundred_dollars_with_a_cache() -> None:
    """At 90% off they are $300 a day."""
    assert bill().cost_with_cache_usd == pytest.approx(300)


def test_real_terms_may_not_cache_so_short_a_prompt() -> None:
    """Under published terms with a minimum of 1,024 tokens the same prompt is not cached: $3,000 stay $3,000."""
    assert bill(find_terms("anthropic-5m")).cost_with_cache_usd == pytest.approx(3000)


def test_every_row_agrees() -> None:
    """No row of the table disagrees with the study."""
    assert prompt_caching_table().agrees
