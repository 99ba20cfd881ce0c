"""Step times against the roofline by hand and the study's table."""

from __future__ import annotations

import pytest
from tests.ask.made import KV_BYTES, LLAMA_13B_PARAMETERS, STUDY

from servewise.ask.steptime import steptime
from servewise.errors import InputError, UnknownName

KEYS = {
    "batch",
    "context_tokens",
    "compute_s",
    "memory_s",
    "overhead_s",
    "communication_s",
    "step_s",
    "tokens_per_s",
    "bound",
    "floor_s",
}


def test_decode_is_the_studys_table() -> None:
    """13.8 ms at batch 1 to 39.8 ms at 32 and 2,048 tokens, less the 0.16 ms of the input table, never read whole."""
    rows = steptime("llama-2-13b", batch=[1, 4, 8, 16, 32], context=2048, **STUDY).result["rows"]

    assert [round(row["step_s"] * 1e3, 1) for row in rows] == pytest.approx([13.8, 16.4, 19.7, 26.4, 39.8], abs=0.21)
    assert [row["tokens_per_s"] for row in rows] == pytest.approx([72, 245, 406, 606, 803], rel=0.015)
    assert {row["bound"] for row in rows} == {"memory"}


def test_memory_time_is_bytes_over_bandwidth() -> None:
    """Weights but for the input table, of which a row is read, and the cache of 8 sequences, at 2 TB/s."""
    (row,) = steptime("llama-2-13b", batch=8, context=1000, **STUDY).result["rows"]
    read = 2 * (LLAMA_13B_PARAMETERS - 32_000 * 5120) + 8 * 1000 * KV_BYTES

    assert row["memory_s"] == pytest.approx(read / 2e12, rel=1e-3)


def test_the_ridge_without_cache_is_the_studys() -> None:
    """312 TFLOP/s over 2 TB/s is 156 FLOP a byte: near batch 156, below where attention's own FLOPs count nothing."""
    result = steptime("llama-2-13b", **STUDY).result

    assert result["ridge_batch_without_kv"] == pytest.approx(156, rel=0.02)
    assert result["ridge_batch"] is None


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_rows_have_contracts_keys_and_keep_the_floor(phase: str) -> None:
    """Each batch has its row, with CONTRACT's keys, never below bytes / bandwidth or FLOPs / peak."""
    answer = steptime("llama-3.1-8b", "h100-sxm", phase=phase, batch=[1, 16], context=512)  # type: ignore[arg-type]

    for row in answer.result["rows"]:
        assert set(row) >= KEYS
        assert row["step_s"] >= row["floor_s"] > 0
    assert [row["batch"] for row in answer.result["rows"]] == [1, 16]


def test_prefill_counts_prompt_tokens() -> None:
    """A prefill step takes in batch x context tokens."""
    (row,) = steptime("llama-2-13b", phase="prefill", batch=2, context=1024, **STUDY).result["rows"]

    assert row["tokens_per_s"] == pytest.approx(2048 / row["step_s"])
    assert row["bound"] == "compute"


def test_a_batch_beyond_memory_is_said_so() -> None:
    """The study's card holds 32 sequences of 2,048 tokens: 64 are timed, with a caveat."""
    caveats = steptime("llama-2-13b", batch=[32, 64], context=2048, **STUDY).caveats
    (found,) = (each for each in caveats if each.code == "beyond-memory")

    assert found.message.startswith("batch 64 does not fit")


def test_fewer_bits_never_take_longer_in_the_ideal() -> None:
    """Bytes bound the decode step, so each row with fewer bytes of both kinds takes at most the time of the first."""
    rows = steptime("llama-2-13b", batch=8, **STUDY).result["precisions"]
    first = rows[0]

    assert len(rows) > 3
    for row in rows[1:]:
        assert row["weight_bytes"] <= first["weight_bytes"]
        assert row["kv_bytes_per_token"] <= first["kv_bytes_per_token"]
        assert row["step_s"] <= first["step_s"]


def test_wrong_words_get_the_nearest() -> None:
    """A phase or an estimator that is not known is refused with what is."""
    with pytest.raises(UnknownName, match="decode"):
        steptime("llama-2-13b", "a100-80gb", phase="decod")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="estimator"):
        steptime("llama-2-13b", "a100-80gb", estimator="calibrate")
