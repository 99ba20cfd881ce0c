"""What each fit may see, and what it is then judged on: another model, another range of load, another accelerator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.accuracy.e2e_measured.points import Point, points
from benchmarks.accuracy.e2e_measured.settings import TELLING

Which = Callable[[Point], bool]
MODEST = 16  # concurrency: up to it, and above it, are the two ranges of load


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """``fits`` and ``holds`` share no point. ``by``: what the two differ in."""

    name: str
    by: Literal["model", "load", "accelerator"]
    fits: Which
    holds: Which

    def fitted(self) -> list[Point]:
        """The points that the fit may see."""
        return [each for each in points() if self.fits(each)]

    def held(self) -> list[Point]:
        """The points judged: none that told a run's unpublished settings."""
        return [each for each in points() if self.holds(each) and not telling(each)]


def telling(point: Point) -> bool:
    """Whether the point told its family's unpublished settings."""
    return not point.public and point.concurrency <= TELLING


def of(*families: str) -> Which:
    """Points of those families, named by how they begin."""
    return lambda point: point.family.startswith(families)


def both(one: Which, other: Which) -> Which:
    """Points of both kinds."""
    return lambda point: one(point) and other(point)


def modest(point: Point) -> bool:
    """Of the lower range of load."""
    return point.concurrency <= MODEST


def heavy(point: Point) -> bool:
    """Of the upper range of load."""
    return point.concurrency > MODEST


QWEN, LLAMA = of("h100-sxm trtllm 1.0.0rc3 Qwen3-32B"), of("h100-sxm trtllm 1.0.0rc3 Llama-3.1-8B")
H100_TRTLLM = of("h100-sxm trtllm 1.0.0rc3")
H100_VLLM = of("h100-sxm vllm 0.12.0 Qwen3-32B bf16")
H200_VLLM, B200_TRTLLM = of("h200 vllm Llama-3.1-70B"), of("b200 trtllm Llama-3.1-70B")
LATER_TRTLLM, EIGHT_BITS_VLLM = of("h100-sxm trtllm 1.2.0"), of("h100-sxm vllm 0.12.0 Qwen3-32B fp8")
NVFP4 = of("b200 trtllm 1.3.0rc5", "gb200 trtllm 1.3.0rc5")

# Each measured point is judged by at most one of the first, and by at most one of those across accelerators.
SPLITS: Sequence[Split] = (
    Split(name="h100 trtllm: Qwen3-32B fp8 to Llama-3.1-8B bf16", by="model", fits=QWEN, holds=LLAMA),
    Split(name="h100 trtllm: Llama-3.1-8B bf16 to Qwen3-32B fp8", by="model", fits=LLAMA, holds=QWEN),
    Split(
        name="h100 trtllm 1.0 to 1.2: Llama-3.1-8B bf16 to Qwen3-32B fp8", by="model", fits=LLAMA, holds=LATER_TRTLLM
    ),
    Split(name="h100 vllm: up to 16 to above", by="load", fits=both(H100_VLLM, modest), holds=both(H100_VLLM, heavy)),
    Split(name="h100 vllm: above 16 to 16", by="load", fits=both(H100_VLLM, heavy), holds=both(H100_VLLM, modest)),
    Split(name="h100 vllm: bf16 to fp8", by="model", fits=both(H100_VLLM, modest), holds=EIGHT_BITS_VLLM),
    Split(name="h200 vllm: up to 16 to above", by="load", fits=both(H200_VLLM, modest), holds=both(H200_VLLM, heavy)),
    Split(name="h200 vllm: above 16 to 4-16", by="load", fits=both(H200_VLLM, heavy), holds=both(H200_VLLM, modest)),
    Split(
        name="b200 trtllm: up to 16 to above", by="load", fits=both(B200_TRTLLM, modest), holds=both(B200_TRTLLM, heavy)
    ),
    Split(
        name="b200 trtllm: above 16 to 4-16", by="load", fits=both(B200_TRTLLM, heavy), holds=both(B200_TRTLLM, modest)
    ),
    Split(name="b200 trtllm: Llama-3.1-70B to Qwen3-32B NVFP4", by="model", fits=B200_TRTLLM, holds=NVFP4),
    Split(name="vllm: h100 to h200", by="accelerator", fits=H100_VLLM, holds=H200_VLLM),
    Split(name="vllm: h200 to h100", by="accelerator", fits=H200_VLLM, holds=H100_VLLM),
    Split(name="trtllm: h100 to b200", by="accelerator", fits=H100_TRTLLM, holds=B200_TRTLLM),
    Split(name="trtllm: b200 to h100", by="accelerator", fits=B200_TRTLLM, holds=H100_TRTLLM),
)

# What ships: everything that was measured of an accelerator and engine, by their names.
SHIPPED: dict[tuple[str, str], Which] = {
    ("h100-sxm", "trtllm"): H100_TRTLLM,
    ("h100-sxm", "vllm"): H100_VLLM,
    ("h200", "vllm"): H200_VLLM,
    ("b200", "trtllm"): B200_TRTLLM,
}
