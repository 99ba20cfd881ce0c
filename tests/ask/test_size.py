"""Sizes against the study's arithmetic and published counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ask.made import KV_BYTES, LLAMA_13B_PARAMETERS, STUDY

from servewise.ask.deploying import Options
from servewise.ask.size import size
from servewise.errors import InputError

KEYS = {
    "weight_bytes",
    "kv_bytes_per_token",
    "kv_budget_bytes",
    "kv_tokens",
    "max_sequences",
    "fits",
    "short_by_bytes",
    "breakdown",
}


def test_the_studys_bytes() -> None:
    """26.03 GB of weights (published), 0.82 MB a token; the rest of 80 GB is cache, nothing reserved."""
    result = size("llama-2-13b", context=2048, **STUDY).result

    assert result["weight_bytes"] == 2 * LLAMA_13B_PARAMETERS
    assert result["kv_bytes_per_token"] == KV_BYTES == 819_200
    assert result["kv_budget_bytes"] == pytest.approx(80e9 - 2 * LLAMA_13B_PARAMETERS)
    assert result["max_sequences"] == (80e9 - 2 * LLAMA_13B_PARAMETERS) // (2048 * KV_BYTES) == 32


@pytest.mark.parametrize(
    ("kv", "kv_heads", "expected"),
    [(None, None, (128, 32, 8)), ("int8", None, (257, 64, 16)), (None, 5, (1029, 257, 64))],
)
def test_the_studys_largest_batches(kv: str | None, kv_heads: int | None, expected: tuple[int, ...]) -> None:
    """The study's table at 512, 2,048 and 8,192 tokens; its 26 GB of weights are rounded down from 26.03 GB."""
    what_if: Options = {**STUDY, "kv": kv, "kv_heads": kv_heads, "max_context": 8192}
    found = [size("llama-2-13b", context=tokens, **what_if).result["max_sequences"] for tokens in (512, 2048, 8192)]

    assert tuple(found) == pytest.approx(expected, abs=1)


def test_contract_keys_and_a_breakdown_that_sums() -> None:
    """CONTRACT's keys are there, and the parts of memory sum to the whole."""
    result = size("llama-3.1-8b", "h100-sxm").result

    assert set(result) >= KEYS
    assert sum(part["bytes"] for part in result["breakdown"]) == pytest.approx(result["memory_bytes"])
    assert result["fits"] is True
    assert result["short_by_bytes"] == 0


def test_not_fitting_is_an_answer() -> None:
    """140 GB of weights do not fit on one 80 GB card: short by at least the difference, no sequences, no error."""
    result = size("llama-2-70b", "a100-80gb").result

    assert result["fits"] is False
    assert result["short_by_bytes"] > 137e9 - 85.9e9
    assert (result["max_sequences"], result["kv_tokens"]) == (0, 0)


def test_tensor_parallel_halves_what_a_card_holds() -> None:
    """Two ranks hold half of the weights and half of the cache of a token each."""
    one, two = (size("llama-2-13b", "a100-80gb", tp=tp, engine="ideal").result for tp in (1, 2))

    assert two["weight_bytes"] == pytest.approx(one["weight_bytes"] / 2, rel=0.01)
    assert two["kv_bytes_per_token"] == one["kv_bytes_per_token"] / 2
    assert two["model_weight_bytes"] == one["model_weight_bytes"]


def test_a_what_if_says_so() -> None:
    """Hypothetical heads and the ideal engine are named among the caveats."""
    codes = {each.code for each in size("llama-2-13b", "a100-80gb", kv_heads=5, engine="ideal").caveats}

    assert {"hypothetical-kv-heads", "ideal-engine"} <= codes


def test_a_log_is_reconciled_term_by_term(tmp_path: Path) -> None:
    """A vLLM start-up log's cache size stands beside the prediction, and both differ by what each row says."""
    log = tmp_path / "vllm.log"
    log.write_text(
        "INFO 06-01 [gpu_model_runner.py:1531] Model loading took 14.9889 GiB and 3.2 seconds\n"
        "INFO 06-01 [gpu_worker.py:230] Available KV cache memory: 54.60 GiB\n"
        "INFO 06-01 [kv_cache_utils.py:715] GPU KV cache size: 447,280 tokens\n"
    )
    result = size("llama-3.1-8b", "h100-sxm", log=log).result

    assert result["logged_kv_tokens"] == 447_280
    assert result["kv_ratio"] == pytest.approx(result["kv_tokens"] / 447_280)
    rows = {row["term"]: row for row in result["reconciliation"]}
    assert rows["weights"]["logged_bytes"] == pytest.approx(14.9889 * 2**30, rel=1e-4)
    for row in rows.values():
        if row["logged_bytes"] is not None:
            assert row["difference_bytes"] == pytest.approx(row["predicted_bytes"] - row["logged_bytes"])


@pytest.mark.parametrize("context", [0, -5, 1.5, 10**12])
def test_a_context_is_a_count(context: int) -> None:
    """A context of no tokens, or of more than any machine holds, is refused by name."""
    with pytest.raises(InputError, match="context"):
        size("llama-2-13b", "a100-80gb", context=context)


def test_a_sequence_that_does_not_fit_says_by_how_much() -> None:
    """A million tokens of Llama 3.1 8B are 65.536 GB on each of two cards: more than the pool, by the difference."""
    found = size("llama-3.1-8b", "h100-sxm", tp=2, context=1_000_000)

    assert not found.result["fits"]
    assert found.result["short_by_bytes"] == pytest.approx(65.536e9 - found.result["kv_budget_bytes"], abs=1)
    assert {"context-does-not-fit", "beyond-context"} <= {each.code for each in found.caveats}


def test_a_windowed_models_own_context_may_be_refused() -> None:
    """Gemma 3 27B leaves 11 GiB on one H100; its ten full layers alone need 10 GiB for 131,072 tokens, windows more."""
    alone = size("gemma-3-27b", "h100-sxm")
    limited = size("gemma-3-27b", "h100-sxm", max_context=8192)

    assert alone.result["sequences"][-1] == {"context_tokens": 131_072, "max_sequences": 0}
    assert "context-exceeds-pool" in {each.code for each in alone.caveats}
    assert "context-exceeds-pool" not in {each.code for each in limited.caveats}
