"""How far predictions are off: medians and 90th percentiles of |predicted / measured - 1|, in all and by load level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Of ``n`` comparisons; NaN where there is none."""

    median: float
    p90: float
    n: int

    def to_json(self) -> dict[str, float]:
        """The median and the 90th percentile."""
        return {"median": self.median, "p90": self.p90, "n": self.n}


def error_of(ratios: Floats | Sequence[float]) -> Error:
    """The error of predictions whose ratios to what was measured are ``ratios``.

    >>> error_of([1.1, 0.9, 1.0]).median
    0.1
    """
    off = np.abs(np.asarray(ratios, np.float64) - 1.0)
    if not len(off):
        return Error(median=float("nan"), p90=float("nan"), n=0)
    return Error(median=round(float(np.median(off)), 12), p90=round(float(np.quantile(off, 0.9)), 12), n=len(off))


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelError:
    """One run's: of what was fitted, of what was held out, and by a fit that saw the other runs alone.

    ``load`` names the run. ``bias`` is the ratio of sums (predicted / measured) on what was held out, or on all where
    nothing was; ``bias_left_out`` the same by the fit on the others (NaN where there is none).
    """

    load: str
    train: Error
    heldout: Error
    left_out: Error
    bias: float
    bias_left_out: float

    def to_json(self) -> dict[str, object]:
        """As the command gives it."""
        return {
            "load": self.load,
            "train": self.train.to_json(),
            "heldout": self.heldout.to_json(),
            "left_out": self.left_out.to_json(),
            "bias": self.bias,
            "bias_left_out": self.bias_left_out,
        }
