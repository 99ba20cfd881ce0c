"""Predicted products of one layer beside an independent measurement: python -m benchmarks.accuracy.layer_products.

Vidur's kernel profiles on A100, H100 and A40 were in no fit. A40 borrows L40S's coefficients; the share of its peak
that it reaches in large products is from these profiles, so its row above 256 tokens is no test. Writes
benchmarks/results/layer_products.json.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import servewise
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.products import Products

ROOT = Path(__file__).parents[1]
DATA = ROOT / "data" / "layer_products" / "vidur.csv"
OUTPUT = ROOT / "results" / "layer_products.json"
COMMAND = "python -m benchmarks.accuracy.layer_products"
DECODE_TOKENS = 256  # up to so many tokens a step is one of decode


@dataclass(frozen=True)
class Layer:
    """One measured layer beside its prediction [s]."""

    accelerator: str
    tokens: int
    measured_s: float
    predicted_s: float
    small_measured_s: float
    small_predicted_s: float

    @property
    def error(self) -> float:
        """Predicted / measured - 1 of the products."""
        return self.predicted_s / self.measured_s - 1.0


def layers() -> Iterator[Layer]:
    """Every row with its prediction."""
    half = FORMATS["fp16"]
    with DATA.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            where = Deployment(
                model=load_model(row["model"]),
                accelerator=load_accelerator(row["accelerator"]),
                kv=half,
                activations=half,
                weights=half,
                engine="vllm",
                parallelism=Parallelism(tensor=int(row["tensor"])),
            )
            tokens, count = int(row["tokens"]), where.model.layer_count
            products = Products(where, coefficients_for(where).coefficients)
            yield Layer(
                accelerator=row["accelerator"],
                tokens=tokens,
                measured_s=float(row["products_us"]) * 1e-6,
                predicted_s=products.layers_s(tokens) / count,
                small_measured_s=float(row["small_kernels_us"]) * 1e-6,
                small_predicted_s=products.small_s(tokens) / count,
            )


def summary(rows: Sequence[Layer]) -> dict[str, float]:
    """Signed and absolute errors of the products, and small kernels measured / predicted."""
    errors = sorted(abs(each.error) for each in rows)
    return {
        "rows": len(rows),
        "median": median(errors),
        "p90": errors[int(0.9 * len(errors))],
        "signed_median": median(each.error for each in rows),
        "small_kernels_ratio": median(each.small_measured_s / each.small_predicted_s for each in rows),
    }


def result() -> dict[str, Any]:
    """The whole result as it is written."""
    groups: dict[str, list[Layer]] = {}
    for each in layers():
        size = f"{'up to' if each.tokens <= DECODE_TOKENS else 'above'} {DECODE_TOKENS} tokens"
        groups.setdefault(f"{each.accelerator}, {size}", []).append(each)
    return {
        "command": COMMAND,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"servewise": servewise.__version__},
        "groups": {name: summary(groups[name]) for name in sorted(groups)},
    }


def main() -> None:
    """Judge, print, write."""
    found = result()
    sys.stdout.write(
        f"{'products of one layer':36}{'rows':>6}{'median':>9}{'p90':>9}{'signed':>9}{'small kernels':>16}\n"
    )
    for name, each in found["groups"].items():
        errors = "".join(f"{each[key]:>9.1%}" for key in ("median", "p90", "signed_median"))
        sys.stdout.write(f"{name:36}{each['rows']:>6}{errors}{each['small_kernels_ratio']:>15.2f}x\n")
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
