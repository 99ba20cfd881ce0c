"""Every held-out point beside its prediction: with what a split's fit found, and with nothing fitted at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pool

from benchmarks.accuracy.e2e_measured.fits import overheads_of, shapes
from benchmarks.accuracy.e2e_measured.points import Point, points
from benchmarks.accuracy.e2e_measured.serve import Served, capacity_of, serve
from benchmarks.accuracy.e2e_measured.settings import settings_of
from benchmarks.accuracy.e2e_measured.splits import SPLITS, Split, telling
from servewise.steptime.server_overheads import ServerOverheads

NOTHING = ""  # in place of a split's name: the shipped kernels alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A held-out point with the prediction of ``split``'s fit.

    ``load``: the KV tokens that all clients want at their ends / those of the pool.
    """

    point: Point
    split: str
    by: str
    served: Served
    load: float

    @property
    def ttft_error(self) -> float:
        """Predicted / measured - 1."""
        return self.served.ttft_s / self.point.ttft_s - 1.0

    @property
    def tpot_error(self) -> float:
        """Predicted / measured - 1."""
        return self.served.tpot_s / self.point.tpot_s - 1.0

    @property
    def queue_share(self) -> float:
        """The part of the predicted TTFT that is waiting."""
        return self.served.queue_s / self.served.ttft_s


def judge(point: Point, split: str, by: str) -> Judged:
    """``point`` predicted with the fit of ``split``."""
    settings = settings_of(point, shapes())
    pool = capacity_of(point, settings)
    wanted = point.concurrency * (point.prompt_tokens + point.output_tokens) * (1.0 + settings.spread) / 2.0
    overheads = overheads_of(split) if split else ServerOverheads()
    return Judged(
        point=point, split=split, by=by, served=serve(point, settings, overheads), load=wanted / pool.kv_tokens
    )


def all_judged(chosen: Sequence[Split] = SPLITS, *, processes: int = 2) -> list[Judged]:
    """Every held-out point of ``chosen`` by its fit, and every point that told no settings with nothing fitted."""
    jobs: list[tuple[Point, str, str]] = [(point, split.name, split.by) for split in chosen for point in split.held()]
    jobs += [(point, NOTHING, "nothing fitted") for point in points() if not telling(point)]
    with Pool(processes) as pool:
        return pool.starmap(judge, jobs, chunksize=16)
