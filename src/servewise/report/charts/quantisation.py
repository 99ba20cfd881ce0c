"""Quantisation: KL from the model as it is by bits, a line for each way of spending them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import End, label_ends
from servewise.report.charts.scales import count_tick, linear_axis, log_axis, named
from servewise.report.wording import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class QualityLine:
    """``points`` are (bits, KL above zero [nats]), fewest bits first."""

    name: str
    points: tuple[tuple[float, float], ...]


def quantisation_chart(lines: Sequence[QualityLine], threshold: float | None) -> str:
    """KL against bits, the threshold as a line across."""
    said = [f"{line.name}: {figure(kl)} at {figure(bits)} bits" for line in lines for bits, kl in line.points[:1]]
    return draw(
        "KL by bits",
        f"From the model as it is, nats a position. {'; '.join(said)}.",
        lambda axes: _plot(axes, lines, threshold),
    )


def _plot(axes: Axes, lines: Sequence[QualityLine], threshold: float | None) -> None:
    for index, line in enumerate(lines):
        axes.plot(
            *zip(*line.points, strict=True),
            color=palette.colour(index),
            linestyle=palette.line(index),
            marker=palette.marker(index),
            markersize=5,
            clip_on=False,
        )
    bits = [point[0] for line in lines for point in line.points]
    kls = [point[1] for line in lines for point in line.points] + ([threshold] if threshold else [])
    log_axis(axes, "y", kls, count_tick)
    axes.set_ylim(min(kls) / 1.3, max(kls) * 1.3)
    axes.set_xlim(min(bits), max(bits))
    linear_axis(axes, "x", count_tick, whole=True)
    if threshold:
        axes.axhline(threshold, color=palette.MUTED, linewidth=1.0, linestyle=(0, (4, 2)))
        axes.annotate(
            "threshold", xy=(0.01, threshold), xycoords=("axes fraction", "data"), xytext=(0, 3),
            textcoords="offset points", ha="left", fontsize=8, color=palette.MUTED,
        )  # fmt: skip
    named(axes, "Bits a value, scales aside", "KL (nats a position)")
    label_ends(axes, [End(line.points[-1][1], line.name, palette.colour(i)) for i, line in enumerate(lines)])
