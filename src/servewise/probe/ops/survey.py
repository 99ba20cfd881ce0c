"""The whole survey of a machine: streams, matrix products, a model's operations; and what was reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from servewise.modelspec.spec import ModelSpec
from servewise.probe.ops.accelerator_file import Measured
from servewise.probe.ops.gemms import gemm_operations
from servewise.probe.ops.machine import Machine
from servewise.probe.ops.model_shapes import attention_operations, product_operations
from servewise.probe.ops.operation import DTYPES, Operation
from servewise.probe.ops.streams import stream_operations
from servewise.probe.ops.timing import PATIENCE_S, Timing, time_operations
from servewise.units import GIB, MIB, format_bytes

STREAMS = ("read", "copy", "gemv")
PRODUCTS = ("gemm", "product")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is timed, and how often: ``passes`` visits of ``samples`` samples for each operation.

    ``patience_s``: how long a visit may go on for undisturbed samples.

    ``working_sets`` [bytes] for streams beside the model's own, ``gemm_sides`` of square products, and for the model
    ``tokens`` of its products, ``batches`` and ``contexts`` of its attention.
    """

    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    working_sets: tuple[int, ...] = (64 * MIB, GIB)
    gemm_sides: tuple[int, ...] = (512, 1024, 1536)
    tokens: tuple[int, ...] = (1, 8, 32, 128, 512)
    batches: tuple[int, ...] = (1, 8, 32)
    contexts: tuple[int, ...] = (256, 1024)
    passes: int = 3
    samples: int = 5
    patience_s: float = PATIENCE_S


class Timed(NamedTuple):
    """An operation with its timing."""

    operation: Operation
    timing: Timing

    @property
    def flops_per_s(self) -> float:
        """FLOP/s at the median."""
        return self.operation.flops / self.timing.median_s

    @property
    def bytes_per_s(self) -> float:
        """Bytes/s at the median."""
        return self.operation.moved_bytes / self.timing.median_s


def operations_of(scope: Scope, model: ModelSpec | None, device: str) -> list[Operation]:
    """Every operation that the survey times."""
    sets = set(scope.working_sets) | {weight_set(model, dtype) for dtype in scope.dtypes if model is not None}
    found = [
        *stream_operations(sorted(sets), scope.dtypes, device),
        *gemm_operations(scope.gemm_sides, scope.dtypes, device),
    ]
    if model is not None:
        found += product_operations(model, scope.tokens, scope.dtypes, device)
        found += attention_operations(model, scope.batches, scope.contexts, scope.dtypes, device)
    return found


def survey(
    scope: Scope, model: ModelSpec | None, machine: Machine, progress: Callable[[int, int], None] | None = None
) -> list[Timed]:
    """Time all of them."""
    operations = operations_of(scope, model, machine.device)
    timings = time_operations(
        operations,
        machine,
        passes=scope.passes,
        samples=scope.samples,
        patience_s=scope.patience_s,
        progress=progress,
    )
    return [Timed(*pair) for pair in zip(operations, timings, strict=True)]


def weight_set(model: ModelSpec, dtype: str) -> int:
    """The bytes of the model's weights in ``dtype``, at most 1 GiB (beyond any cache)."""
    return min(GIB, model.parameters * DTYPES[dtype][0].itemsize)


def reached_bandwidth(timed: Iterable[Timed], model: ModelSpec | None, dtypes: Sequence[str]) -> Measured:
    """The highest rate at which memory was streamed, over working sets from the model's weights up.

    A model whose weights fit into a cache is read at the cache's rate: the working set is told.
    """
    least = min((weight_set(model, dtype) for dtype in dtypes), default=0) if model is not None else GIB
    streams = [each for each in timed if each.operation.kind in STREAMS]
    largest = max(each.operation.shape["working_set_bytes"] for each in streams)
    counted = [each for each in streams if each.operation.shape["working_set_bytes"] >= min(least, largest)]
    best = max(counted, key=lambda each: each.bytes_per_s)
    what = f"{best.operation.name} ({best.operation.dtype})"
    size = format_bytes(best.operation.shape["working_set_bytes"])
    return Measured(value=best.bytes_per_s, note=f"{what} over {size}; {_spread(best.timing)}")


def reached_peak(timed: Iterable[Timed], dtype: str) -> Measured:
    """The highest rate of a matrix product in ``dtype``."""
    products = [each for each in timed if each.operation.kind in PRODUCTS and each.operation.dtype == dtype]
    best = max(products, key=lambda each: each.flops_per_s)
    shape = best.operation.shape
    sizes = f"{shape['tokens']} x {shape['inputs']} x {shape['outputs']}"
    return Measured(value=best.flops_per_s, note=f"matrix product {sizes} in {dtype}; {_spread(best.timing)}")


def _spread(timing: Timing) -> str:
    disturbed = f", {timing.disturbed} disturbed set aside" if timing.clean and timing.disturbed else ""
    unclean = "" if timing.clean else ", disturbed by other programs"
    return f"median of {timing.samples} samples, p10 to p90 {timing.spread:.1%} apart{disturbed}{unclean}"
