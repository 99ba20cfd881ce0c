"""The distribution of inter-token latency: the share of gaps that are longer, a line for each load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import short
from servewise.report.charts.scales import log_axis, named, seconds_tick
from servewise.report.wording import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_SHARE = 1e-3


class Curve(NamedTuple):
    """Values [s] in ascending order and the share of gaps at or below each."""

    name: str
    values_s: tuple[float, ...]
    shares: tuple[float, ...]


def gaps_chart(curves: Sequence[Curve]) -> str:
    """The share of gaps longer than a time, both axes logarithmic: the tail is what users see as a stall."""
    said = [
        f"{curve.name}: half above {seconds(_at(curve, 0.5))}, 1% above {seconds(_at(curve, 0.99))}" for curve in curves
    ]
    return draw(
        "Distribution of inter-token latency",
        f"{'; '.join(said)}.",
        lambda axes: _plot(axes, curves),
        height_in=3.3,
    )


def _at(curve: Curve, share: float) -> float:
    return next(
        (value for value, at in zip(curve.values_s, curve.shares, strict=True) if at >= share), curve.values_s[-1]
    )


def _plot(axes: Axes, curves: Sequence[Curve]) -> None:
    for index, curve in enumerate(curves):
        longer = [max(1 - share, LEAST_SHARE) for share in curve.shares]
        axes.plot(
            curve.values_s, longer, color=palette.colour(index), linestyle=palette.line(index),
            label=short(curve.name), drawstyle="steps-post",
        )  # fmt: skip
    values = [value for curve in curves for value in (curve.values_s[0], curve.values_s[-1])]
    ends = (min(values) * 0.9, max(values) * 1.1)
    log_axis(axes, "x", ends, seconds_tick, most=7)
    log_axis(axes, "y", (LEAST_SHARE, 1.0), lambda value, _=None: f"{100 * value:.3g}%")
    axes.set(xlim=ends, ylim=(LEAST_SHARE, 1.0))
    named(axes, "Gap between a request's events", "Share of gaps that are longer")
    if len(curves) > 1:
        axes.legend(loc="lower left")
