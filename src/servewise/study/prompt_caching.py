"""The study's prompt-caching arithmetic: a million calls a day with one prompt of 1,000 tokens."""

from __future__ import annotations

from servewise.pricing.cache_terms import CacheTerms, cache_terms
from servewise.study import published
from servewise.study.agreement import rounded
from servewise.study.row import StudyTable
from servewise.techniques.prefix import PromptBill, prompt_bill

STUDY_TERMS = CacheTerms(
    name="study",
    title="the study's assumption: 90% off, nothing to write, every call a hit",
    write_multiplier=1.0,
    read_multiplier=1 - published.CACHED_DISCOUNT,
)


def bill(terms: CacheTerms = STUDY_TERMS) -> PromptBill:
    """A day's bill for the study's prompts under ``terms`` [USD]."""
    return prompt_bill(
        prompt_tokens=published.CACHED_PROMPT_TOKENS,
        calls=published.CALLS_PER_DAY,
        usd_per_million=published.USD_PER_MILLION_TOKENS,
        terms=terms,
        hit_rate=1.0,
    )


def prompt_caching_table() -> StudyTable:
    """A day's tokens and dollars, without and with a cache."""
    day, usd = bill(), published.USD_PER_DAY
    case = {"prompt_tokens": published.CACHED_PROMPT_TOKENS, "calls_per_day": published.CALLS_PER_DAY}
    uncached = [each.title for each in cache_terms().values() if not each.cacheable_tokens(case["prompt_tokens"])]
    return StudyTable(
        name="prompt_caching",
        title="Prompt caching: 1,000 tokens, a million calls a day, $3 per million tokens, 90% off when cached",
        rows=(
            rounded(case, "prompt tokens", "1", day.prompt_tokens / 1e9, "billion a day"),
            rounded(case, "cost without cache", usd["without cache"], day.cost_usd, "$ a day"),
            rounded(case, "cost with cache", usd["with cache"], day.cost_with_cache_usd, "$ a day"),
        ),
        note="the study's terms: every call a hit, no fee to write. Under the terms of "
        f"{len(uncached)} of the {len(cache_terms())} caches in the catalogue a prompt of 1,000 tokens is too short to "
        "be cached at all",
    )
