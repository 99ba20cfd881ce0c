"""Prompt-cache terms against the providers' pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from servewise.errors import InputError, UnknownName
from servewise.pricing.cache_terms import cache_terms, find_terms


@pytest.mark.parametrize(
    ("name", "write", "read", "ttl_s"),
    [
        # https://platform.claude.com/docs/en/build-with-claude/prompt-caching (2026-06)
        ("anthropic-5m", 1.25, 0.10, 300),
        ("anthropic-1h", 2.00, 0.10, 3600),
        # https://developers.openai.com/api/docs/guides/prompt-caching (2026)
        ("openai-gpt-5.6", 1.25, 0.10, 1800),
        ("openai-gpt-5", 1.00, 0.10, None),
        ("openai-gpt-4o", 1.00, 0.50, None),
        # https://ai.google.dev/gemini-api/docs/caching (2026-07-07)
        ("gemini-implicit", 1.00, 0.10, None),
        # https://api-docs.deepseek.com/quick_start/pricing (2026-10-17): 0.003 / 0.15 and 0.022 / 0.66 USD
        ("deepseek-flash", 1.00, 0.003 / 0.15, None),
        ("deepseek-v4-pro", 1.00, 0.022 / 0.66, None),
    ],
)
def test_terms_are_the_providers(name: str, write: float, read: float, ttl_s: float | None) -> None:
    """Multipliers and lifetimes are those that the provider prints."""
    terms = find_terms(name)
    assert terms.write_multiplier == write
    assert terms.read_multiplier == pytest.approx(read, rel=1e-4)
    assert terms.ttl_s == ttl_s


@pytest.mark.parametrize("name", sorted(cache_terms()))
def test_every_entry_knows_its_source(name: str) -> None:
    """Each entry has an address and a date, and reading is cheaper than the plain price."""
    terms = find_terms(name)
    assert terms.source.startswith("https://")
    assert terms.date.startswith("202")
    assert 0 < terms.read_multiplier < 1 <= terms.write_multiplier


def test_cacheable_tokens() -> None:
    """Prompts under the minimum are not cached; longer ones in whole steps; a model may have its own minimum."""
    gpt = find_terms("openai-gpt-5")
    assert [gpt.cacheable_tokens(tokens) for tokens in (0, 1023, 1024, 1151, 1152)] == [0, 0, 1024, 1024, 1152]
    claude = find_terms("anthropic-5m")
    assert claude.cacheable_tokens(3000) == 3000
    assert claude.cacheable_tokens(3000, "opus-4.5") == 0
    assert claude.cacheable_tokens(600, "opus-5") == 600


def test_unknown_name_offers_the_nearest() -> None:
    """A name that is not listed is refused with the nearest."""
    with pytest.raises(UnknownName, match="anthropic-5m"):
        find_terms("antropic-5m")


def test_own_file(tmp_path: Path) -> None:
    """A user's file of the same form is read; write and read are enough."""
    path = tmp_path / "terms.toml"
    path.write_text("[ours]\nwrite = 1\nread = 0.3\n")
    terms = find_terms("ours", str(path))
    assert (terms.read_multiplier, terms.min_tokens, terms.granularity_tokens, terms.ttl_s) == (0.3, 0, 1, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ours]\nwrite = 1\n", "lacks read"),
        ("[ours]\nwrite = 1\nread = -0.1\n", "out of range"),
        ("[ours]\nwrite = 1\nread = 0.1\ngranularity_tokens = 0\n", "at least 1"),
        ("[ours]\nwrite = 1\nread = 0.1\nmin_tokens = 1.5\n", "whole number"),
        ("[ours]\nwrite = 1\nread = 0.1\nrefreshed = 'no'\n", "true or false"),
        ("[ours]\nwrite = 1\nread = 0.1\nttl = 3\n", "did you mean ttl_s"),
        ("ours = 1\n", "must be a table"),
    ],
)
def test_wrong_file_is_one_clear_line(tmp_path: Path, text: str, told: str) -> None:
    """A wrong terms file is refused with place and cure."""
    path = tmp_path / "terms.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        cache_terms(str(path))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
