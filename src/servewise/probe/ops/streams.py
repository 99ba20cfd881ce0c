"""How fast memory is read and written: sums, copies and matrix-vector products, piece by piece over working sets.

A call takes the next piece of the working set, and so comes back to a piece only after all the others: rates are those
of memory (or of the cache that holds the whole working set), while a call is short enough to be timed undisturbed.
Bytes are counted as STREAM counts them (McCalpin 1995): a copy moves twice its source; what a cache reads before it
writes is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

import torch
from torch.nn.functional import linear

from servewise.probe.ops.operation import Operation, dtype_named, filled
from servewise.units import MIB

PIECE_BYTES = 16 * MIB
INPUTS = 2048  # of the matrices; a multiple of every kernel's block


def stream_operations(working_sets: Sequence[int], dtypes: Sequence[str], device: str) -> Iterator[Operation]:
    """Reads, copies and matrix-vector products over each working set [bytes], in whole pieces."""
    for size in working_sets:
        pieces = max(1, size // PIECE_BYTES)
        yield _read(pieces, device)
        yield _copy(pieces, device)
        yield from (_gemv(pieces, dtype, device) for dtype in dtypes)


def _operation(
    kind: str, name: str, dtype: str, pieces: int, flops: float, prepare: Callable[[], Callable[[], object]]
) -> Operation:
    return Operation(
        kind=kind,
        name=name,
        dtype=dtype,
        flops=flops,
        moved_bytes=PIECE_BYTES,
        prepare=prepare,
        shape={"working_set_bytes": pieces * PIECE_BYTES},
    )


def _read(pieces: int, device: str) -> Operation:
    def prepare() -> Callable[[], object]:
        parts = cycle(filled((pieces, PIECE_BYTES // 4), torch.float32, device).unbind())
        return lambda: next(parts).sum()

    return _operation("read", "sum", "float32", pieces, PIECE_BYTES / 4, prepare)


def _copy(pieces: int, device: str) -> Operation:
    def prepare() -> Callable[[], object]:
        source = filled((pieces, PIECE_BYTES // 8), torch.float32, device)
        pairs = cycle(zip(source.unbind(), torch.empty_like(source).unbind(), strict=True))

        def copy() -> None:
            part, target = next(pairs)
            target.copy_(part)

        return copy

    return _operation("copy", "copy", "float32", pieces, 0.0, prepare)


def _gemv(pieces: int, dtype: str, device: str) -> Operation:
    """One token through matrices that fill the working set: what a decode step at batch 1 does with weights."""
    kind = dtype_named(dtype)
    outputs = PIECE_BYTES // (INPUTS * kind.itemsize)

    def prepare() -> Callable[[], object]:
        weights = cycle(filled((pieces, outputs, INPUTS), kind, device).unbind())
        token = filled((1, INPUTS), kind, device)
        return lambda: linear(token, next(weights))

    return _operation("gemv", "linear of 1 token", dtype, pieces, 2.0 * outputs * INPUTS, prepare)
