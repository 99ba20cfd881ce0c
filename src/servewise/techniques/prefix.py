"""The price of a repeated prompt prefix: what a prompt cache saves, and when it costs more than it saves.

Symbols: p = price of an input token, w and r = write and read multipliers of the cache's terms, h = hit rate, T = time
to live [s], λ = arrival rate of prompts that share the prefix [1/s].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from servewise.errors import InputError
from servewise.pricing.cache_terms import CacheTerms


@dataclass(frozen=True, slots=True)
class PromptBill:
    """What the prompts of a period cost [USD], without and with the cache, and the tokens behind it."""

    prompt_tokens: int
    cached_tokens: float
    cost_usd: float
    cost_with_cache_usd: float

    @property
    def saved_usd(self) -> float:
        """What the cache saves; negative where its write fee is not earned back [USD]."""
        return self.cost_usd - self.cost_with_cache_usd


def prompt_bill(
    *,
    prompt_tokens: int,
    calls: int,
    usd_per_million: float,
    terms: CacheTerms,
    hit_rate: float,
    prefix_tokens: int | None = None,
) -> PromptBill:
    """The bill of ``calls`` prompts of ``prompt_tokens`` tokens whose first ``prefix_tokens`` repeat (None: all).

    calls x p x (rest + n (h r + (1 - h) w)), with n the tokens of the prefix that the terms cache (minimum, whole
    steps) and rest the others; ``hit_rate`` h of the calls find them. The output's price, storage fees and prices that
    change with the hour are left out.
    """
    prefix = prompt_tokens if prefix_tokens is None else prefix_tokens
    if not 0 <= prefix <= prompt_tokens or calls < 0:
        raise InputError(f"a prefix of {prefix!r} in {prompt_tokens!r} tokens, {calls!r} calls", where="prompt")
    h, p = _share(hit_rate), _price(usd_per_million) / 1e6
    cacheable = terms.cacheable_tokens(prefix)
    each = prompt_tokens - cacheable + cacheable * (h * terms.read_multiplier + (1 - h) * terms.write_multiplier)
    return PromptBill(calls * prompt_tokens, calls * cacheable * h, calls * prompt_tokens * p, calls * each * p)


def counted_bill(*, prompt_tokens: int, reusable_tokens: int, usd_per_million: float, terms: CacheTerms) -> PromptBill:
    """The bill of prompts whose reuse was counted (``reuse.count_reuse``) instead of assumed.

    p (found r + (all - found) w): every token that is not found is written. Minimum and steps are not applied, since
    they hold by prompt and not by sum: an upper bound on the saving under terms that have them.
    """
    if not 0 <= reusable_tokens <= prompt_tokens:
        raise InputError(f"{reusable_tokens!r} of {prompt_tokens!r} tokens cannot be reused", where="tokens")
    p = _price(usd_per_million) / 1e6
    written = (prompt_tokens - reusable_tokens) * terms.write_multiplier
    with_cache = p * (reusable_tokens * terms.read_multiplier + written)
    return PromptBill(prompt_tokens, reusable_tokens, prompt_tokens * p, with_cache)


def break_even_hit_rate(terms: CacheTerms) -> float:
    """The hit rate from which the cache pays for its write fee: (w - 1) / (w - r); 0 where writing costs no more.

    >>> from servewise.pricing.cache_terms import find_terms
    >>> round(break_even_hit_rate(find_terms("anthropic-5m")), 3)
    0.217
    """
    w, r = terms.write_multiplier, terms.read_multiplier
    if w <= 1:
        return 0.0
    return (w - 1) / (w - r) if r < 1 else math.inf


def hit_rate_at(rate_per_s: float, terms: CacheTerms) -> float:
    """The long-run share of prompts that find their prefix, for Poisson arrivals of rate λ = ``rate_per_s``.

    Entries that live T from their last use: 1 - exp(-λ T), the chance that the gap to the prompt before is under T.
    Entries that live T from being written: λ T / (1 + λ T), since each write serves the λ T prompts that follow it.
    Without a promised lifetime: 1. At the same rate, bursty arrivals hit more often. Both are renewal arguments over
    one entry; the first is the single item of Che, Tung, Wang, IEEE JSAC 2002.
    """
    if not 0 <= rate_per_s < math.inf:
        raise InputError(f"must be zero or more a second, not {rate_per_s!r}", where="rate")
    if terms.ttl_s is None:
        return 1.0
    expected = rate_per_s * terms.ttl_s
    return -math.expm1(-expected) if terms.refreshed else expected / (1 + expected)


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise InputError(f"a hit rate lies between 0 and 1, not {value!r}", where="hit rate")
    return value


def _price(value: float) -> float:
    if not 0 <= value < 1e9:
        raise InputError(f"must be zero or more USD a million tokens, not {value!r}", where="price")
    return value
