"""Published speed-ups of speculative decoding beside predictions; used by ``speculation_in_the_loop``.

Rows and their sources: benchmarks/data/spec_decode/published.csv. ``tokens_per_verification`` is the mean that the
source (or, for the same heads on the same task, ``tokens_from``) publishes, so what is judged is the time of a round:
draft, verification, and the plain step that it replaces.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from servewise.ask.deploying import deploy
from servewise.deployment.deployment import Deployment
from servewise.simulate.speculating.drafters import Drafter, DraftModel, HostTime, Ngram
from servewise.simulate.speculating.one_layer import EAGLE3_VOCABULARY, eagle, multi_token_prediction
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.estimator import Estimator
from servewise.steptime.verification import verification_seconds

DATA = Path(__file__).parents[1] / "data" / "spec_decode" / "published.csv"
TABLE_3, TABLE_5 = "https://arxiv.org/abs/2503.01840 table 3", "https://arxiv.org/abs/2503.01840 table 5"
BY_K = "https://github.com/vllm-project/vllm/issues/20780"
SHORT_TOKENS = 500


@dataclass(frozen=True)
class Published:
    """One published speed-up; ``tokens`` NaN where the source does not say what was accepted."""

    source: str
    method: str
    model: str
    accelerator: str
    tensor: int
    engine: str
    weights: str
    k: int
    batch: int
    context: int
    tokens: float
    speedup: float
    note: str

    @property
    def where(self) -> tuple[str, str, int, str, str]:
        """What decides step times."""
        return self.model, self.accelerator, self.tensor, self.engine, self.weights

    @property
    def known(self) -> bool:
        """Whether the acceptance is published."""
        return not math.isnan(self.tokens)


@dataclass(frozen=True)
class Round:
    """The parts of a round by the estimator [s], without the engine's own time."""

    plain_s: float
    verify_s: float
    draft_s: float

    def speedup(self, tokens: float, host_s: float = 0.0) -> float:
        """Tokens x plain step / round."""
        return tokens * self.plain_s / (self.verify_s + self.draft_s + host_s)


def published() -> list[Published]:
    """Every row."""
    with DATA.open(encoding="utf-8") as file:
        return [_row(each) for each in csv.DictReader(file)]


def _row(row: dict[str, str]) -> Published:
    return Published(
        source=row["source"],
        method=row["method"],
        model=row["model"],
        accelerator=row["accelerator"],
        tensor=int(row["tensor"]),
        engine=row["engine"],
        weights=row["weights"],
        k=int(row["k"]),
        batch=int(row["batch"]),
        context=int(row["context"]),
        tokens=float(row["tokens_per_verification"] or math.nan),
        speedup=float(row["speedup"]),
        note=row["note"],
    )


def _deployed(model: str, accelerator: str, tensor: int, engine: str, weights: str) -> Deployment:
    stored = None if weights == "bf16" else weights
    return deploy(model, accelerator, tp=tensor, engine=engine, weights=stored)


@cache
def _clock(where: tuple[str, str, int, str, str]) -> Estimator:
    return calibrated_roofline(_deployed(*where))


@cache
def _drafter(method: str, where: tuple[str, str, int, str, str]) -> Drafter:
    if method == "ngram":
        return Ngram()
    target = _deployed(*where)
    heads: dict[str, Callable[[], Deployment]] = {
        "eagle": lambda: eagle(target),
        "eagle3": lambda: eagle(target, draft_vocabulary=EAGLE3_VOCABULARY),
        "mtp": lambda: multi_token_prediction(target),
    }
    return DraftModel(calibrated_roofline(heads[method]()))


def round_of(row: Published) -> Round:
    """The row's round, by the calibrated roofline of its accelerator, engine and model."""
    clock, tokens = _clock(row.where), row.batch * row.context
    return Round(
        plain_s=verification_seconds(clock, row.batch, 1, tokens),
        verify_s=verification_seconds(clock, row.batch, row.k + 1, tokens + row.batch * row.k),
        draft_s=_drafter(row.method, row.where).round_s(row.k, row.batch, tokens),
    )


@dataclass(frozen=True)
class Judged:
    """A row with a prediction."""

    row: Published
    predicted: float

    @property
    def error(self) -> float:
        """predicted / published - 1."""
        return self.predicted / self.row.speedup - 1

    @property
    def right_side(self) -> bool:
        """Whether gain is told from loss."""
        return (self.predicted > 1) == (self.row.speedup > 1)


def judged(rows: Sequence[Published], host: HostTime | None = None, tokens: float | None = None) -> list[Judged]:
    """Each row as predicted, with the engine's own time where it is given, ``tokens`` in place of published ones."""
    own = host or HostTime()
    return [Judged(row, round_of(row).speedup(tokens or row.tokens, own.seconds(row.k, row.batch))) for row in rows]


def summary(found: Sequence[Judged]) -> dict[str, float]:
    """Count, share of right sides, median, 90th percentile and worst of the absolute error, signed median."""
    errors = [abs(each.error) for each in found]
    return {
        "rows": len(found),
        "right_side": sum(each.right_side for each in found) / len(found),
        "losses": sum(each.row.speedup < 1 for each in found),
        "losses_told": sum(each.row.speedup < 1 and each.right_side for each in found),
        "median_error": median(errors),
        "p90_error": float(np.quantile(errors, 0.9)),
        "worst_error": max(errors),
        "signed_median": median(each.error for each in found),
    }


def fitted_host(rows: Sequence[Published]) -> HostTime:
    """The engine's own time that explains the rows' rounds: least squares of the relative error, none below zero.

    The round that a row implies is tokens x plain step / speed-up. At one batch size only a pass's time can be told.
    """
    rounds = [round_of(row) for row in rows]
    implied = np.array([row.tokens * each.plain_s / row.speedup for row, each in zip(rows, rounds, strict=True)])
    left = implied - np.array([each.verify_s + each.draft_s for each in rounds])
    passes, sequences = np.array([row.k for row in rows], float), np.array([row.batch for row in rows], float)
    columns = [passes] if len(set(sequences)) == 1 else [passes, sequences]
    found = np.linalg.lstsq(np.stack(columns, 1) / implied[:, None], left / implied, rcond=None)[0]
    if len(found) == 2 and found.min() < 0:  # one of them is not needed
        alone = [float(each @ (left / implied**2) / (each @ (each / implied**2))) for each in columns]
        found = np.array([0.0, alone[1]]) if found[0] < 0 else np.array([alone[0], 0.0])
    return HostTime(pass_s=max(0.0, float(found[0])), sequence_s=float(found[1]) if len(found) == 2 else 0.0)


def implied_tokens(rows: Sequence[Published]) -> float:
    """The geometric mean of the tokens a verification that the rows' speed-ups imply."""
    return math.exp(sum(math.log(row.speedup / round_of(row).speedup(1.0)) for row in rows) / len(rows))
