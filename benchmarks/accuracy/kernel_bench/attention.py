"""Attention of one layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.accuracy.kernel_bench.products import HALF, coefficients
from benchmarks.accuracy.kernel_bench.rows import Judged, Kernel, bucket
from servewise.modelspec.flops import pairs

CACHE = (2**22, 2**28)  # bytes of keys and values


def judge_attention(rows: Iterable[Kernel]) -> Iterator[Judged]:
    """Decode and prefill attention with bf16 keys and values."""
    for each in rows:
        if each.kind == "attention_decode":
            kept = _kept(each) * each.rows
            name = f"attention, decode{', multi-head' if each.heads == each.kv_heads else ''}"
            yield Judged(name, each.card, bucket(kept, CACHE) + " bytes", each.seconds, _decode_s(each, kept))
        elif each.kind == "attention_prefill":
            size = bucket(each.tokens, (4096,)) + " tokens"
            yield Judged("attention, prefill", each.card, size, each.seconds, _prefill_s(each))


def _kept(each: Kernel) -> float:
    return 2.0 * HALF * max(1.0, each.kv_heads / each.tensor) * each.head_dim * each.tokens


def _decode_s(each: Kernel, kept: float) -> float:
    known, bandwidth, peak = coefficients(each.card, "bf16")
    kernel = known.attention.multi_head if each.heads == each.kv_heads else known.attention.decode
    flops = 4.0 * each.heads / each.tensor * each.head_dim * each.tokens * each.rows
    read = kept / bandwidth
    return max(
        kernel.launch_s,
        kernel.ramp_s + read / kernel.kv_efficiency,
        read,
        flops / peak / known.attention.flop_efficiency,
    )


def _prefill_s(each: Kernel) -> float:
    known, bandwidth, peak = coefficients(each.card, "bf16")
    attention = known.attention
    flops = 4.0 * each.heads * each.head_dim * pairs(0, each.tokens) * each.rows
    moved = 2.0 * HALF * each.heads * each.head_dim * each.tokens * each.rows
    return (
        attention.prefill_launch_s
        + flops / peak / attention.flop_efficiency
        + attention.activation_factor * moved / bandwidth
        + _kept(each) * each.rows / bandwidth / attention.decode.kv_efficiency
    )
