"""Block formats against the gguf package's own quantisers and against ggml's layout decoded by hand."""

from __future__ import annotations

import struct

import numpy as np
import pytest

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")

from servewise.engine.checkpoints.blocks import decoded  # noqa: E402
from servewise.errors import InputError  # noqa: E402
from servewise.modelspec.gguf_types import TENSOR_TYPES  # noqa: E402

KINDS = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
BYTES = {each.name: each.block_bytes for each in TENSOR_TYPES.values()}


def random_blocks(kind: str, blocks: int = 64, seed: int = 0) -> np.ndarray:
    """Blocks of random bytes whose 16-bit scales are finite."""
    data = np.random.default_rng(seed).integers(0, 256, (blocks, BYTES[kind]), dtype=np.uint8)
    halves = {"Q6_K": (208,), "Q8_0": (0,), "Q4_0": (0,), "Q5_0": (0,)}.get(kind, (0, 2))
    for start in halves:
        data[:, start + 1] &= 0b10111011  # an exponent below all ones is a finite number
    return data.reshape(-1)


def decode(data: np.ndarray, kind: str) -> np.ndarray:
    """Our decoding."""
    found: np.ndarray = decoded(torch.from_numpy(data), kind, BYTES[kind], "here").numpy()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_pattern_decodes_as_the_gguf_package_has_it(kind: str) -> None:
    """Random blocks give the reference's float32 numbers, bit for bit."""
    data = random_blocks(kind)

    expected = gguf.quants.dequantize(data.reshape(1, -1), gguf.GGMLQuantizationType[kind]).reshape(-1)

    np.testing.assert_array_equal(decode(data, kind), expected)


@pytest.mark.parametrize(("kind", "steps"), [("Q8_0", 127), ("Q4_0", 8), ("Q4_1", 15), ("Q5_0", 16), ("Q5_1", 31)])
def test_decoding_undoes_quantising_within_one_step_of_the_grid(kind: str, steps: int) -> None:
    """What the gguf package quantises comes back within a step: the block's range over its levels."""
    weights = np.random.default_rng(1).normal(size=(8, 256)).astype(np.float32)

    packed = gguf.quants.quantize(weights, gguf.GGMLQuantizationType[kind])
    found = decode(np.ascontiguousarray(packed).reshape(-1), kind).reshape(8, 8, 32)

    blocks = weights.reshape(8, 8, 32)
    span = np.ptp(blocks, axis=2) if kind.endswith("_1") else np.abs(blocks).max(axis=2)
    assert (np.abs(found - blocks) <= 1.01 * span[:, :, None] / steps).all()


def test_a_q4_1_block_by_hand() -> None:
    """d = 0.5, m = -1: weight i is the low half of byte i, weight 16 + i the high half, times d plus m."""
    block = np.frombuffer(struct.pack("<ee", 0.5, -1.0) + bytes([0x2F] + [0x00] * 14 + [0xF1]), dtype=np.uint8)

    found = decode(block.copy(), "Q4_1")

    assert (found[0], found[16], found[15], found[31]) == (15 * 0.5 - 1, 2 * 0.5 - 1, 0.5 - 1, 15 * 0.5 - 1)
    assert set(found[1:15]) == {-1.0}


def test_a_q6_k_block_by_hand() -> None:
    """Weight 0 takes the low half of ql[0] and the low two bits of qh[0]; weight 96 the high ones of ql[32], qh[0]."""
    low, high, scales = bytearray(128), bytearray(64), [1] * 16
    low[0], low[32], high[0] = 0x05, 0x70, 0b11_00_00_10
    scales[0], scales[6] = 3, -2
    block = np.frombuffer(bytes(low + high) + struct.pack("<16be", *scales, 0.25), dtype=np.uint8)

    found = decode(block.copy(), "Q6_K")

    assert found[0] == 0.25 * 3 * (0x05 + 2 * 16 - 32)
    assert found[96] == 0.25 * -2 * (0x07 + 3 * 16 - 32)
    assert found[255] == 0.25 * -32


def test_a_q4_k_block_by_hand() -> None:
    """Sub-block 4 has its scale's low bits in byte 8 and its high bits in byte 0 of the twelve."""
    packed = bytearray(12)
    packed[0], packed[8], packed[4] = 0b01_000111, 0b0010_0011, 0b10_000001
    levels = bytearray(128)
    levels[64] = 0x0A
    block = np.frombuffer(struct.pack("<ee", 0.5, 0.25) + bytes(packed + levels), dtype=np.uint8)

    found = decode(block.copy(), "Q4_K")

    assert found[0] == 0.5 * 7 * 0 - 0.25 * 1
    assert found[128] == 0.5 * (0b01_0011) * 10 - 0.25 * (0b10_0010)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_plain_types_keep_their_bits(kind: str) -> None:
    """A plain type comes back as its own dtype with the bytes that were stored."""
    data = np.arange(64, dtype=np.uint8)

    found = decoded(torch.from_numpy(data), kind, BYTES[kind], "here")

    assert found.dtype == {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
    assert bytes(found.view(torch.uint8).numpy()) == bytes(data)


def test_a_format_that_is_not_read_is_refused_by_name() -> None:
    """IQ2_XXS is named together with the formats that are read."""
    with pytest.raises(InputError, match=r"IQ2_XXS, which is not read; F32.*Q6_K"):
        decode(np.zeros(66, dtype=np.uint8), "IQ2_XXS")
