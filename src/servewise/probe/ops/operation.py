"""An operation to be timed: what it computes, what it moves, and how to make it ready."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from servewise.errors import UnknownName

# PyTorch's dtype and the name that accelerators and precisions go by here.
DTYPES: Mapping[str, tuple[torch.dtype, str]] = {
    "float64": (torch.float64, "fp64"),
    "float32": (torch.float32, "fp32"),
    "bfloat16": (torch.bfloat16, "bf16"),
    "float16": (torch.float16, "fp16"),
}

PATTERN = 2**16 + 1  # no multiple of any row, so that rows differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """``flops`` and ``moved_bytes`` are of one call: arithmetic, and bytes read and written at the least.

    ``kind``: read, copy, gemv (these stream memory), gemm, product (a model's), attention. ``shape`` holds its sizes.
    ``prepare`` allocates and returns the call.
    """

    kind: str
    name: str
    dtype: str
    flops: float
    moved_bytes: float
    prepare: Callable[[], Callable[[], object]]
    shape: Mapping[str, int] = field(default_factory=dict)


def dtype_named(name: str) -> torch.dtype:
    """PyTorch's dtype of that name (float32, bfloat16 ...); UnknownName otherwise."""
    if name not in DTYPES:
        raise UnknownName("dtype", name, DTYPES, where="dtypes", hint=f"one of {', '.join(DTYPES)}")
    return DTYPES[name][0]


def filled(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    """A tensor of ordinary numbers, one random pattern over and over.

    Zeros, denormals and (on GPUs, by the power they save) constants can be faster or slower than real work.
    """
    pattern = torch.empty(PATTERN, dtype=torch.float32, device=device).uniform_(-1.0, 1.0).to(dtype)
    count = math.prod(shape)
    return pattern.repeat(-(-count // PATTERN))[:count].view(shape)
