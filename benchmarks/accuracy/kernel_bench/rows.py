"""The timed kernels."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "kernel_bench"
CARDS = {"A40": "a40", "A100": "a100-80gb", "H100": "h100-sxm"}


@dataclass(frozen=True)
class Kernel:
    """One timed kernel; numbers that its kind does not have are 0."""

    card: str
    kind: str
    model: str
    tensor: int
    devices: int
    per_node: int
    rows: int  # sequences, or rows of a product
    tokens: int  # of each sequence
    inner: int
    outer: int
    heads: int
    kv_heads: int
    head_dim: int
    bytes: float
    seconds: float


@dataclass(frozen=True)
class Judged:
    """A kernel (or the small kernels of a layer together) with its prediction; ``size`` names its bucket."""

    kind: str
    card: str
    size: str
    measured_s: float
    predicted_s: float

    @property
    def error(self) -> float:
        """Predicted / measured - 1."""
        return self.predicted_s / self.measured_s - 1.0


def kernels() -> Iterator[Kernel]:
    """Every timed kernel."""
    with gzip.open(DATA / "kernels.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield Kernel(
                card=row["gpu"],
                kind=row["kind"],
                model=row["model"],
                tensor=_whole(row["tp"]) or 1,
                devices=_whole(row["n_devices"]),
                per_node=_whole(row["per_node"]),
                rows=_whole(row["batch_or_m"]),
                tokens=_whole(row["tokens_or_kv_len"]),
                inner=_whole(row["k"]),
                outer=_whole(row["n"]),
                heads=_whole(row["n_heads"]),
                kv_heads=_whole(row["n_kv_heads"]),
                head_dim=_whole(row["head_dim"]),
                bytes=float(row["bytes"] or 0),
                seconds=float(row["latency_us"]) * 1e-6,
            )


def _whole(text: str) -> int:
    return int(float(text)) if text else 0


def bucket(count: float, bounds: tuple[float, ...]) -> str:
    """The bucket of ``count``: up to the first bound that holds it.

    >>> bucket(300, (256, 4096)), bucket(5000, (256, 4096))
    ('up to 4,096', 'above 4,096')
    """
    above = next((bound for bound in bounds if count <= bound), None)
    return f"above {bounds[-1]:,}" if above is None else f"up to {above:,}"
