"""Codes of b bits in b / 8 bytes each. Legend: N codes, W bytes."""

from __future__ import annotations

import torch
from torch import Tensor

BYTE = 8


def packed_bytes(codes: int, bits: int) -> int:
    """Bytes of a row of ``codes`` codes [bytes]: the row ends on a whole byte."""
    return -(-codes * bits // BYTE)


def pack(codes: Tensor, bits: int) -> Tensor:
    """(..., N) codes from 0 to 2^bits - 1 as (..., W) uint8, the first code in the lowest bits.

    >>> pack(torch.tensor([1, 2, 3]), 4).tolist()
    [33, 3]
    """
    per_word = BYTE if BYTE % bits else BYTE // bits
    filled = _filled(codes.to(torch.uint8), per_word)
    if BYTE % bits:
        ones = (filled.unsqueeze(-1) >> _range(bits, codes)) & 1
        return _sum_of(_in_runs(ones.flatten(-2), BYTE), 1)[..., : packed_bytes(codes.shape[-1], bits)]
    return _sum_of(_in_runs(filled, per_word), bits)


def unpack(packed: Tensor, bits: int, codes: int) -> Tensor:
    """The ``codes`` codes, (..., N) uint8, that ``pack`` put in (..., W)."""
    if BYTE % bits:
        filled = _filled(packed, bits)
        ones = ((filled.unsqueeze(-1) >> _range(BYTE, packed)) & 1).flatten(-2)
        return _sum_of(_in_runs(ones, bits), 1)[..., :codes]
    shifts = _range(BYTE // bits, packed) * bits
    return ((packed.unsqueeze(-1) >> shifts) & ((1 << bits) - 1)).flatten(-2)[..., :codes]


def _in_runs(values: Tensor, run: int) -> Tensor:
    return values.reshape(*values.shape[:-1], values.shape[-1] // run, run)


def _range(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, dtype=torch.uint8, device=like.device)


def _sum_of(parts: Tensor, bits: int) -> Tensor:
    """Parts of ``bits`` bits along the last dimension, side by side in one byte."""
    return (parts << (_range(parts.shape[-1], parts) * bits)).sum(-1, dtype=torch.uint8)


def _filled(values: Tensor, multiple: int) -> Tensor:
    short = -values.shape[-1] % multiple
    return torch.nn.functional.pad(values, (0, short)) if short else values
