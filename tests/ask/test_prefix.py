"""Prefix reuse by hand and the study's arithmetic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servewise.ask.prefix import prefix
from servewise.errors import InputError, UnknownName

KEYS = {
    "requests",
    "prompt_tokens",
    "reusable_tokens",
    "hit_rate",
    "breaks",
    "cost_usd",
    "cost_with_cache_usd",
}


def trace(tmp_path: Path, rows: list[dict[str, object]]) -> str:
    """Those rows as a JSONL trace."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def asked(at: float, tokens: list[int]) -> dict[str, object]:
    """A request of those token ids."""
    return {"arrival_s": at, "prompt_tokens": len(tokens), "output_tokens": 1, "prompt": tokens}


def test_the_studys_arithmetic() -> None:
    """1,000 tokens a million times a day at $3 a million: $3,000, or $300 with nine tenths off."""
    result = prefix(prompt_tokens=1000, calls=1_000_000, price=3.0).result

    assert set(result) >= KEYS
    assert result["cost_usd"] == pytest.approx(3000)
    assert result["cost_with_cache_usd"] == pytest.approx(300)


def test_a_shared_prefix_by_hand(tmp_path: Path) -> None:
    """Blocks of 4: the second prompt shares 8 of 12 tokens with the first, the third all 12: 20 of 36 reused."""
    first, second = list(range(12)), [*range(8), 90, 91, 92, 93]
    log = trace(tmp_path, [asked(0, first), asked(1, second), asked(2, first)])
    result = prefix(log, block=4, price=1.0).result

    assert (result["requests"], result["prompt_tokens"], result["reusable_tokens"]) == (3, 36, 20)
    assert result["hit_rate"] == pytest.approx(20 / 36)
    assert result["cost_usd"] == pytest.approx(36e-6)
    assert result["cost_with_cache_usd"] == pytest.approx((16 + 20 * 0.1) * 1e-6)
    (broken,) = result["breaks"]
    assert (broken["offset_tokens"], broken["kind"], broken["requests"], broken["lost_tokens"]) == (
        8,
        "divergence",
        1,
        4,
    )


def test_depth_says_where_reuse_ends(tmp_path: Path) -> None:
    """Half of the first blocks are found, and none of the second, where every prompt goes its own way."""
    log = trace(tmp_path, [asked(at, [1, 2, 3, 4, *[100 * at + 10 + step for step in range(4)]]) for at in (0, 1)])
    rows = {row["offset_tokens"]: row["hit_rate"] for row in prefix(log, block=4).result["reuse_by_depth"]}

    assert rows == {0: 0.5, 4: 0.0}


def test_a_time_to_live_forgets(tmp_path: Path) -> None:
    """The same prompt ten seconds later is found by a cache that keeps it for twenty, not by one of five."""
    log = trace(tmp_path, [asked(0, [1, 2, 3, 4]), asked(10, [1, 2, 3, 4])])

    assert prefix(log, block=4, ttl=20).result["reusable_tokens"] == 4
    assert prefix(log, block=4, ttl=5).result["reusable_tokens"] == 0


def test_a_larger_cache_never_finds_less(tmp_path: Path) -> None:
    """Least recently used caches are stacks (Mattson 1970): the hit rate never falls with the capacity."""
    rows = [asked(at, [at % 7, 1, 2, 3, at % 3, 5, 6, 7]) for at in range(60)]
    found = [row["hit_rate"] for row in prefix(trace(tmp_path, rows), block=4).result["by_capacity"]]

    assert found == sorted(found)
    assert found[-1] == pytest.approx(prefix(trace(tmp_path, rows), block=4).result["hit_rate"])


def test_without_a_price_there_is_no_bill(tmp_path: Path) -> None:
    """Dollars are unknown, not zero, where no price is given."""
    log = trace(tmp_path, [asked(0, [1, 2, 3, 4])])

    assert prefix(log, block=4).result["cost_usd"] is None


def test_a_trace_without_prompts_says_nothing() -> None:
    """The Azure trace has lengths only: refused, with what is needed."""
    with pytest.raises(InputError, match="block hashes, token ids or prompts"):
        prefix("azure-conv")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prompt_tokens": 10, "calls": 5},
        {"prompt_tokens": 10, "calls": 5, "price": -1.0},
        {"prompt_tokens": 10, "calls": 5, "price": 1.0, "hit_rate": 2.0},
        {"prompt_tokens": 10, "calls": 5, "price": 1.0, "prefix_tokens": 11},
        {"prompt_tokens": 0, "calls": 5, "price": 1.0},
    ],
)
def test_arithmetic_without_its_numbers_is_refused(options: dict[str, float]) -> None:
    """Without a trace the tokens, the calls and the price are needed, and must make sense."""
    with pytest.raises(InputError):
        prefix(**options)  # type: ignore[arg-type]


def test_unknown_terms_and_tokenizers_get_the_known() -> None:
    """A provider's cache or a tokenizer that is not known is refused with what is."""
    with pytest.raises(UnknownName, match="anthropic"):
        prefix(prompt_tokens=1, calls=1, price=1.0, terms="antropic")
    with pytest.raises(UnknownName, match="token ids"):
        prefix(prompt_tokens=1, calls=1, price=1.0, tokenizer="cl100k")


@pytest.mark.parametrize("setting", ["prompt_tokens", "prefix_tokens", "calls", "hit_rate"])
def test_a_trace_leaves_no_setting_of_the_arithmetic(setting: str) -> None:
    """What a trace itself says cannot be set beside it: refused, not ignored."""
    with pytest.raises(InputError, match="either a trace"):
        prefix("mooncake-conv", **{setting: 1})  # type: ignore[arg-type]
