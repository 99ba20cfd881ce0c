"""Bytes of quantised formats against their published layouts and the files that use them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.errors import InputError, UnknownName
from servewise.precision import FORMATS
from servewise.techniques.quantisation import (
    SCHEMES,
    Traffic,
    amdahl,
    decode_speedup_bound,
    effective_bits,
    find_scheme,
    matrix_bytes,
)

sizes = st.floats(1, 1e15)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        # bits per weight as llama.cpp's quantize README prints them (ggml-org/llama.cpp, tools/quantize, 2026)
        ("q4_0", 4.5), ("q4_1", 5.0), ("q5_0", 5.5), ("q5_1", 6.0), ("q8_0", 8.5),
        ("q2_K", 2.625), ("q3_K", 3.4375), ("q4_K", 4.5), ("q5_K", 5.5), ("q6_K", 6.5625),
        ("iq1_s", 1.5625),
        ("iq2_xxs", 2.0625), ("iq2_xs", 2.3125), ("iq3_xxs", 3.0625), ("iq3_s", 3.4375), ("iq4_xs", 4.25),
        # OCP MX v1.0 and NVIDIA: an 8-bit scale per 32 and per 16 values
        ("mxfp4", 4.25), ("mxfp6", 6.25), ("mxfp8", 8.25), ("nvfp4", 4.5), ("mxfp4-gguf", 4.25),
        # QLoRA section 3: constants of 0.5 bits a parameter, 0.127 with double quantisation
        ("bnb-nf4", 4.5), ("bnb-nf4-double", 4.127),
        # fp16 scale and 4-bit zero point per 128 weights
        ("gptq-g128", 4.15625), ("awq-g128", 4.15625), ("gptq-g32", 4.625),
    ],
)  # fmt: skip
def test_effective_bits_are_the_published_ones(name: str, bits: float) -> None:
    """A scheme's bits a value, scales included, are those its authors print."""
    assert find_scheme(name).bits == pytest.approx(bits, abs=5e-4)


@pytest.mark.parametrize("name", ["mxfp4", "mxfp8", "nvfp4"])
def test_schemes_agree_with_precisions(name: str) -> None:
    """A format named in both tables has the same bits in both."""
    assert SCHEMES[name].bits == FORMATS[name].bits


def test_every_scheme_knows_its_source() -> None:
    """Each scheme has an address and fewer bits than what it replaces, 16."""
    for scheme in SCHEMES.values():
        assert scheme.source.startswith("https://")
        assert 1 < scheme.bits < 16


def test_deepseek_blocks_add_nothing_that_matters() -> None:
    """FP8 with a 4-byte scale per 128 x 128 block (DeepSeek-V3) is 8 bits to 0.03%."""
    assert find_scheme("fp8_block128").bits == pytest.approx(8, rel=3e-4)


def test_a_gptq_matrix_by_hand() -> None:
    """4,096 x 4,096 at 4 bits, group 128: 8 MiB of values, 131,072 scales of 2 bytes and zero points of half a byte."""
    assert matrix_bytes(4096, 4096, 4, 128, zero_bits=4) == 8 * 2**20 + 131_072 * 5 // 2


def test_a_short_last_group_has_its_own_scale() -> None:
    """130 columns in groups of 128 need two scales a row: 65 bytes of values and 4 of scales."""
    assert matrix_bytes(1, 130, 4, 128) == 65 + 4


@given(st.integers(1, 64), st.integers(1, 5000), st.sampled_from([2, 3, 4, 8]), st.sampled_from([32, 64, 128]))
def test_matrix_bytes_are_never_below_the_effective_bits(rows: int, columns: int, bits: int, group: int) -> None:
    """Whole groups cost the effective bits; a ragged end costs at most one more group's scale a row and two bytes."""
    ideal = rows * columns * effective_bits(bits, group) / 8
    real = matrix_bytes(rows, columns, bits, group)
    assert ideal <= real <= ideal + 2 * rows + 2


@given(sizes, sizes, st.floats(1, 16))
def test_amdahl_is_the_bytes_ratio(weights: float, kv: float, ratio: float) -> None:
    """Shrinking the weights by a ratio gains what Amdahl says of their share of the traffic."""
    share = weights / (weights + kv)
    gain = decode_speedup_bound(Traffic(weights, kv), Traffic(weights / ratio, kv))
    assert gain == pytest.approx(amdahl(share, ratio), rel=1e-9)
    assert gain * (1 + 1e-12) >= 1
    assert gain <= ratio * (1 + 1e-12)


def test_the_cache_dilutes_weight_quantisation() -> None:
    """Llama 2 13B, 26 GB of weights: 4-bit weights gain 3.4x at batch 1 and 1.32x at batch 32 of 2,048 tokens.

    By hand: (26 + 1.68) / (6.5 + 1.68) and (26 + 53.69) / (6.5 + 53.69), with the study's cache sizes.
    """
    one = decode_speedup_bound(Traffic(26e9, 1.68e9), Traffic(6.5e9, 1.68e9))
    many = decode_speedup_bound(Traffic(26e9, 53.69e9), Traffic(6.5e9, 53.69e9))
    assert (round(one, 2), round(many, 2)) == (3.38, 1.32)


@pytest.mark.parametrize(
    ("bits", "group"), [(0, 128), (-4, 128), (4, 0), (float("nan"), 128), (4, float("inf")), (65, 128)]
)
def test_impossible_schemes_are_refused(bits: float, group: float) -> None:
    """Bits or groups that no format can have are wrong input."""
    with pytest.raises(InputError, match="no scheme"):
        effective_bits(bits, group)


def test_other_wrong_input_is_refused() -> None:
    """An unknown scheme, a share above 1 and an empty step are refused."""
    with pytest.raises(UnknownName, match="gptq-g128"):
        find_scheme("gptq-g12")
    with pytest.raises(InputError, match="share"):
        amdahl(1.2, 4)
    with pytest.raises(InputError, match="traffic"):
        decode_speedup_bound(Traffic(1, 1), Traffic(0, 0))
