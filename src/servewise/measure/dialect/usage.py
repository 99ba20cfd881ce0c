"""The server's own counts of tokens, wherever it puts them."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST_TOKENS = 10**9  # beyond any context: such a count is damage


class Usage(NamedTuple):
    """Tokens as the server counted them; None where it did not say."""

    prompt: int | None = None
    cached: int | None = None
    output: int | None = None


def usage_in(event: dict[Any, Any]) -> Usage | None:
    """The counts within an event or answer.

    ``usage`` is OpenAI's, in the last event or in each (vLLM's and SGLang's continuous usage); cached tokens stand in
    ``prompt_tokens_details`` (OpenAI, vLLM, SGLang, llama.cpp) or ``prompt_cache_hit_tokens`` (DeepSeek).
    llama.cpp's ``timings`` count too: ``prompt_n`` are the tokens that it computed, ``cache_n`` those it had,
    ``predicted_n`` the output.
    """
    usage, timings = event.get("usage"), event.get("timings")
    if isinstance(usage, dict):
        return _of_usage(usage, timings if isinstance(timings, dict) else {})
    if isinstance(timings, dict):
        return _of_timings(timings)
    return None


def count(value: object) -> int | None:
    """``value`` where it can be a number of tokens."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _of_usage(usage: dict[Any, Any], timings: dict[Any, Any]) -> Usage:
    details = usage.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else None
    if cached is None:
        cached = count(usage.get("prompt_cache_hit_tokens"))
    if cached is None:
        cached = count(timings.get("cache_n"))
    return Usage(count(usage.get("prompt_tokens")), cached, count(usage.get("completion_tokens")))


def _of_timings(timings: dict[Any, Any]) -> Usage:
    computed, cached = count(timings.get("prompt_n")), count(timings.get("cache_n"))
    prompt = None if computed is None else computed + (cached or 0)
    return Usage(prompt, cached, count(timings.get("predicted_n")))
