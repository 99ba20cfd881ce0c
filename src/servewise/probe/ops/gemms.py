"""How fast a machine multiplies: square matrix products of several sizes, whose best rate is its reachable peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from servewise.probe.ops.operation import Operation, dtype_named, filled


def gemm_operations(sides: Sequence[int], dtypes: Sequence[str], device: str) -> Iterator[Operation]:
    """Square products of each side and dtype; 2 n³ FLOPs each."""
    return (_square(side, dtype, device) for dtype in dtypes for side in sides)


def _square(side: int, dtype: str, device: str) -> Operation:
    kind = dtype_named(dtype)

    def prepare() -> Callable[[], object]:
        left, right = filled((side, side), kind, device), filled((side, side), kind, device)
        return lambda: left @ right

    return Operation(
        kind="gemm", name=f"{side} x {side} x {side}", dtype=dtype, flops=2.0 * side**3,
        moved_bytes=3.0 * side * side * kind.itemsize, prepare=prepare,
        shape={"tokens": side, "inputs": side, "outputs": side},
    )  # fmt: skip
