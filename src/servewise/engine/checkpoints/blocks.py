"""ggml's block formats -> float32, as ggml's own reference functions compute them (ggml-quants.c, dequantize_row_*).

Legend: N blocks, B bytes of a block. A block holds 32 weights (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0) or 256 (the K formats)
with a 16-bit scale d, and a minimum m or dmin where the format has one; a K block has sub-blocks of 32 or 16 weights
with scales of 6 or 8 bits. The products are taken in float32 in the reference's order, so that results equal its bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from servewise.errors import InputError

PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}


def decoded(blocks: Tensor, kind: str, block_bytes: int, where: str) -> Tensor:
    """The weights, flat, of ``blocks`` (uint8, flat) in the ggml type ``kind``: as stored if plain, else float32."""
    if kind in PLAIN:
        return blocks.view(PLAIN[kind])
    if kind not in _DECODERS:
        known = ", ".join((*PLAIN, *_DECODERS))
        raise InputError(f"is stored as {kind}, which is not read; {known} are", where=where)
    return _DECODERS[kind](blocks.view(-1, block_bytes)).reshape(-1)


def _half(blocks_NB: Tensor, start: int) -> Tensor:
    return blocks_NB[:, start : start + 2].contiguous().view(torch.float16).float()


def _nibbles(bytes_NB: Tensor) -> Tensor:
    """(N, B) -> (N, 2B): the low halves of all bytes, then the high halves."""
    return torch.cat((bytes_NB & 15, bytes_NB >> 4), dim=1)


def _q8_0(blocks_NB: Tensor) -> Tensor:
    return blocks_NB[:, 2:].view(torch.int8).float() * _half(blocks_NB, 0)


def _q4_0(blocks_NB: Tensor) -> Tensor:
    return (_nibbles(blocks_NB[:, 2:]).float() - 8) * _half(blocks_NB, 0)


def _q4_1(blocks_NB: Tensor) -> Tensor:
    return _nibbles(blocks_NB[:, 4:]).float() * _half(blocks_NB, 0) + _half(blocks_NB, 2)


def _fifth_bits(bytes_N4: Tensor) -> Tensor:
    """Bit i of the 32 belongs to weight i; (N, 32) of 0 and 16."""
    shifts = torch.arange(8, dtype=torch.uint8)
    return ((bytes_N4[:, :, None] >> shifts) & 1).reshape(len(bytes_N4), 32) << 4


def _q5_0(blocks_NB: Tensor) -> Tensor:
    levels = _nibbles(blocks_NB[:, 6:]) | _fifth_bits(blocks_NB[:, 2:6])
    return (levels.float() - 16) * _half(blocks_NB, 0)


def _q5_1(blocks_NB: Tensor) -> Tensor:
    levels = _nibbles(blocks_NB[:, 8:]) | _fifth_bits(blocks_NB[:, 4:8])
    return levels.float() * _half(blocks_NB, 0) + _half(blocks_NB, 2)


def _scales_and_minima(bytes_N12: Tensor) -> tuple[Tensor, Tensor]:
    """The eight 6-bit scales and minima of a Q4_K or Q5_K block, (N, 8) each (get_scale_min_k4).

    Bytes 0-3 hold scales 0-3, bytes 4-7 minima 0-3, in their low six bits; the high two bits of these are those of
    scales and minima 4-7, whose low four bits are the low and high halves of bytes 8-11.
    """
    first, second, third = bytes_N12[:, 0:4], bytes_N12[:, 4:8], bytes_N12[:, 8:12]
    scales = torch.cat((first & 63, (third & 15) | (first >> 6 << 4)), dim=1)
    minima = torch.cat((second & 63, (third >> 4) | (second >> 6 << 4)), dim=1)
    return scales.float(), minima.float()


def _k_levels(bytes_N128: Tensor) -> Tensor:
    """(N, 8, 32): each 32 bytes hold two sub-blocks, the first in the low halves, the second in the high ones."""
    quarters = bytes_N128.view(-1, 4, 1, 32)
    return torch.cat((quarters & 15, quarters >> 4), dim=2).reshape(-1, 8, 32)


def _k_weights(blocks_NB: Tensor, levels: Tensor) -> Tensor:
    scales, minima = _scales_and_minima(blocks_NB[:, 4:16])
    scales, minima = scales * _half(blocks_NB, 0), minima * _half(blocks_NB, 2)
    return levels.float() * scales[:, :, None] - minima[:, :, None]


def _q4_k(blocks_NB: Tensor) -> Tensor:
    return _k_weights(blocks_NB, _k_levels(blocks_NB[:, 16:].contiguous()))


def _q5_k(blocks_NB: Tensor) -> Tensor:
    """Bit j of byte i of the 32 is the fifth bit of weight i in sub-block j."""
    shifts = torch.arange(8, dtype=torch.uint8)[:, None]
    fifth = (blocks_NB[:, None, 16:48] >> shifts) & 1
    return _k_weights(blocks_NB, _k_levels(blocks_NB[:, 48:].contiguous()) | (fifth << 4))


def _q6_k(blocks_NB: Tensor) -> Tensor:
    """Two halves of 128 weights: 64 bytes of low four bits, 32 bytes of high two; 16 sub-blocks with int8 scales."""
    low = blocks_NB[:, :128].reshape(-1, 2, 1, 64)
    low = torch.cat((low & 15, low >> 4), dim=2).reshape(-1, 2, 4, 32)
    shifts = torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None]
    high = (blocks_NB[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & 3
    levels = (low | (high << 4)).reshape(-1, 16, 16).float() - 32
    scales = blocks_NB[:, 192:208].contiguous().view(torch.int8).float() * _half(blocks_NB, 208)
    return levels * scales[:, :, None]


_DECODERS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "Q8_0": _q8_0,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
