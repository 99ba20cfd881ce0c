"""Quantisation: the bytes a step reads against the tokens a second it gives, quality beside the name where known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import short, spread
from servewise.report.charts.scales import count_tick, gib_tick, linear_axis, named
from servewise.report.wording import rate, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_COLUMN = 0.2  # of the axis: points nearer than that have their names above one another
_LINE = 0.062  # of the axis' height: one line of text


class PrecisionPoint(NamedTuple):
    """A precision: the weights' bytes on one accelerator, tokens per second, and a note on quality (may be empty)."""

    name: str
    weight_bytes: float
    tokens_per_s: float
    quality: str = ""


def precision_chart(points: Sequence[PrecisionPoint], *, batch: str = "") -> str:
    """Tokens per second against weight bytes; fewer bytes lie to the left, faster is higher."""
    said = "; ".join(
        f"{point.name} {size(point.weight_bytes)}, {rate(point.tokens_per_s)} tokens/s{_tail(point)}"
        for point in points
    )
    return draw("Bytes against speed by precision", f"{said}.", lambda axes: _plot(axes, points, batch))


def _tail(point: PrecisionPoint) -> str:
    return f", {point.quality}" if point.quality else ""


def _plot(axes: Axes, points: Sequence[PrecisionPoint], batch: str) -> None:
    ordered = sorted(points, key=lambda point: point.weight_bytes)
    sizes = [point.weight_bytes for point in ordered]
    speeds = [point.tokens_per_s for point in ordered]
    if speeds == sorted(speeds, reverse=True):
        axes.plot(sizes, speeds, color=palette.GRID, linewidth=1.2, zorder=1)
    axes.scatter(sizes, speeds, color=palette.colour(0), s=28, zorder=3)
    axes.set(xlim=(0, max(sizes) * 1.3), ylim=(0, max(speeds) * 1.15))
    for point, height in _named(ordered, max(sizes) * 1.3, max(speeds) * 1.15):
        axes.annotate(
            " ".join(short(each) for each in (point.name, point.quality) if each),
            xy=(point.weight_bytes, height),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    _gib_ticks(axes, max(sizes) * 1.3)
    linear_axis(axes, "y", count_tick)
    named(axes, "Weights on one accelerator (GiB)", f"Tokens per second{f', batch {batch}' if batch else ''}")


def _named(ordered: Sequence[PrecisionPoint], end: float, top: float) -> list[tuple[PrecisionPoint, float]]:
    """Each point with the height of its name: names of points that lie near one another are moved apart."""
    columns: list[list[PrecisionPoint]] = []
    for point in ordered:
        if columns and point.weight_bytes - columns[-1][0].weight_bytes < _COLUMN * end:
            columns[-1].append(point)
        else:
            columns.append([point])
    found = []
    for column in columns:
        heights = spread([point.tokens_per_s / top for point in column], _LINE)
        found += [(point, height * top) for point, height in zip(column, heights, strict=True)]
    return found


def _gib_ticks(axes: Axes, end: float) -> None:
    linear_axis(axes, "x", gib_tick)
    step = next((each for each in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if end / 2**30 / each <= 7), None)
    if step:
        axes.set_xticks([index * step * 2**30 for index in range(int(end / 2**30 / step) + 1)])
