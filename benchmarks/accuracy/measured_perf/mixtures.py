"""Published step times of servers with routed experts, few sequences at once: the test of counted launches."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.accuracy.measured_perf.cases import activations
from benchmarks.accuracy.measured_perf.data import DATA
from benchmarks.accuracy.measured_perf.names import stored
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.shape import decode_shape


@dataclass(frozen=True)
class Step:
    """One published step time beside its prediction [s]."""

    name: str
    batch: int
    measured_s: float
    predicted_s: float

    @property
    def error(self) -> float:
        """Predicted / measured - 1, without a sign."""
        return abs(self.predicted_s / self.measured_s - 1.0)


def steps() -> Iterator[Step]:
    """Every row. None was in a fit."""
    with (DATA / "mixtures.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            where = _deployment(row)
            estimator, batch = calibrated_roofline(where), int(row["batch"])
            shape = decode_shape(batch, int(row["context_tokens"]), estimator.window_tokens)
            name = f"{row['model']} {row['weights']}, {row['engine']}, {row['tensor']} x {row['accelerator']}"
            yield Step(name, batch, float(row["step_ms"]) / 1e3, estimator.seconds(shape))


def _deployment(row: dict[str, str]) -> Deployment:
    model = stored(load_model(row["model"]), row["weights"], row["engine"])
    assert model is not None
    return Deployment(
        model=model,
        accelerator=load_accelerator(row["accelerator"]),
        kv=FORMATS[row["kv"]],
        activations=activations(model.weights),
        engine=row["engine"],
        parallelism=Parallelism(tensor=int(row["tensor"])),
    )
