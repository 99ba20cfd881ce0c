"""Published decode rates of one sequence beside predictions: python -m benchmarks.accuracy.published_decode.

Most accelerators, models and formats here were in no fit: this shows what borrowed coefficients are worth. Nothing is
tuned to it. Writes benchmarks/results/published_decode.json.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import servewise
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS, parse_precision
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.ideal import ideal_roofline
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.shape import decode_shape

ROOT = Path(__file__).parents[1]
DATA = ROOT / "data" / "published_decode" / "batch_1.csv"
OUTPUT = ROOT / "results" / "published_decode.json"
COMMAND = "python -m benchmarks.accuracy.published_decode"
ENGINES = {"gpt-fast": "gpt-fast", "llama.cpp": "llamacpp"}  # neither was measured: both borrow vLLM's coefficients


@dataclass(frozen=True)
class Published:
    """One published rate beside its prediction; ratios are measured / predicted step times."""

    engine: str
    accelerator: str
    tensor: int
    model: str
    weights: str
    calibrated_ratio: float
    ideal_ratio: float
    inside_95: bool

    @property
    def group(self) -> str:
        """Engine, accelerator and ranks, model and format."""
        return f"{self.engine} {self.accelerator} x{self.tensor} {self.model} {self.weights}"


def published() -> list[Published]:
    """Every row with its prediction."""
    with DATA.open(encoding="utf-8") as file:
        return [_judged(row) for row in csv.DictReader(file)]


def _judged(row: dict[str, str]) -> Published:
    half = FORMATS["fp16"]
    where = Deployment(
        model=load_model(row["model"]),
        accelerator=load_accelerator(row["accelerator"]),
        kv=half,
        activations=half,
        weights=parse_precision(row["weights"]),
        engine=ENGINES[row["engine"]],
        parallelism=Parallelism(tensor=int(row["tensor"])),
    )
    shape, measured = decode_shape(1, int(row["mean_context_tokens"])), 1.0 / float(row["tokens_per_s"])
    calibrated = measured / calibrated_roofline(where).seconds(shape)
    return Published(
        engine=row["engine"],
        accelerator=row["accelerator"],
        tensor=int(row["tensor"]),
        model=row["model"],
        weights=row["weights"],
        calibrated_ratio=calibrated,
        ideal_ratio=measured / ideal_roofline(where).seconds(shape),
        inside_95=abs(math.log(calibrated)) <= 1.96 * coefficients_for(where).spread.decode,
    )


def summary(rows: Sequence[Published]) -> dict[str, float]:
    """Median ratios, median absolute error of the prediction, and the share within the 95% interval."""
    return {
        "steps": len(rows),
        "calibrated_ratio": median(each.calibrated_ratio for each in rows),
        "ideal_ratio": median(each.ideal_ratio for each in rows),
        "median_error": median(abs(1 / each.calibrated_ratio - 1) for each in rows),
        "inside_95": sum(each.inside_95 for each in rows) / len(rows),
    }


def result() -> dict[str, Any]:
    """The whole result as it is written."""
    rows = published()
    groups: dict[str, list[Published]] = {}
    for each in rows:
        groups.setdefault(each.group, []).append(each)
    return {
        "command": COMMAND,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"servewise": servewise.__version__},
        "engines": {engine: summary([each for each in rows if each.engine == engine]) for engine in ENGINES},
        "groups": {name: summary(members) for name, members in groups.items()},
    }


def main() -> None:
    """Judge, print, write."""
    found = result()
    sys.stdout.write(f"{'measured / predicted':58}{'steps':>6}{'calibrated':>12}{'ideal':>8}{'in 95%':>8}\n")
    for name, each in {**found["groups"], **found["engines"]}.items():
        numbers = (
            f"{each['steps']:>6}{each['calibrated_ratio']:>12.2f}{each['ideal_ratio']:>8.2f}{each['inside_95']:>8.0%}"
        )
        sys.stdout.write(f"{name:58}{numbers}\n")
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
