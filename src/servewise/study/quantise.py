"""Round-to-nearest quantisation of the tiny transformer: its weights, or what its KV cache keeps."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial

import numpy as np

from servewise.errors import InputError
from servewise.study.transformer import Block, Floats, Store, Transformer


def round_to_nearest(values: Floats, bits: int, axis: int) -> Floats:
    """``values`` on a symmetric grid of 2^bits - 1 levels, one scale per slice along ``axis``.

    scale = max|v| / (2^(bits-1) - 1); v -> scale x round(v / scale). Error at most scale / 2 per value.

    >>> round_to_nearest(np.array([[1.0, -0.4, 0.6]]), 2, axis=1)
    array([[ 1., -0.,  1.]])
    """
    if bits < 2:
        raise InputError(f"a symmetric grid needs at least 2 bits, not {bits}", where="round_to_nearest")
    largest = np.max(np.abs(values), axis=axis, keepdims=True)
    scale = np.where(largest > 0, largest, 1.0) / (2 ** (bits - 1) - 1)
    rounded: Floats = np.round(values / scale) * scale
    return rounded


def quantise_weights(model: Transformer, bits: int) -> Transformer:
    """Every matrix in ``bits`` bits, one scale per output channel (per token in the tables); norms stay."""
    return _map_matrices(
        model, partial(round_to_nearest, bits=bits, axis=0), partial(round_to_nearest, bits=bits, axis=1)
    )


def in_float16(model: Transformer) -> Transformer:
    """Every matrix rounded to 16 bits: the model that others are compared with."""
    return _map_matrices(model, to_float16, to_float16)


def to_float16(values: Floats) -> Floats:
    """``values`` rounded to float16."""
    return values.astype(np.float16).astype(np.float64)


def kv_store(bits: int) -> Store:
    """A cache that keeps keys and values in ``bits`` bits, one scale per token and head."""
    return partial(round_to_nearest, bits=bits, axis=-1)


def _map_matrices(model: Transformer, matrix: Store, table: Store) -> Transformer:
    return replace(
        model,
        embedding=table(model.embedding),
        positions=None if model.positions is None else table(model.positions),
        blocks=tuple(_map_block(block, matrix) for block in model.blocks),
        head=matrix(model.head),
    )


def _map_block(block: Block, matrix: Store) -> Block:
    names = (each.name for each in fields(block) if not each.name.endswith("_norm"))
    return replace(block, **{name: matrix(getattr(block, name)) for name in names})
