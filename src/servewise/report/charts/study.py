"""The study's figures again: our lines, and rings where the study's own figures lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import End, label_ends
from servewise.report.charts.scales import count_tick, linear_axis, log_axis, named
from servewise.report.wording import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_TICKS = 6  # so few values of x are its ticks


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """At ``x``, our value with its interval, and the study's value; None where there is none."""

    x: float
    ours: float
    study: float | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class StudyLine:
    """One series in order of x."""

    name: str
    points: tuple[StudyPoint, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: its name with the unit, how its ticks read, and whether it is logarithmic (``base`` 2 or 10)."""

    name: str
    tick: Callable[..., str] = count_tick
    base: int | None = None


def study_chart(title: str, lines: Sequence[StudyLine], x: Scale, y: Scale) -> str:
    """Ours as lines, the study's figures as rings; all values above zero on logarithmic axes."""
    said = [
        f"{line.name}: {', '.join(f'{figure(point.ours)} at {figure(point.x)}' for point in line.points)}"
        for line in lines
    ]
    return draw(title, f"{y.name} by {x.name}. {'; '.join(said)}.", lambda axes: _plot(axes, lines, x, y))


def _plot(axes: Axes, lines: Sequence[StudyLine], x: Scale, y: Scale) -> None:
    for index, line in enumerate(lines):
        _line(axes, index, line)
    points = [point for line in lines for point in line.points]
    ys = [value for point in points for value in (point.ours, point.study) if value is not None]
    xs = [point.x for point in points]
    _scale(axes, x, y, xs, ys)
    named(axes, x.name, y.name)
    label_ends(axes, [End(line.points[-1].ours, line.name, palette.colour(index)) for index, line in enumerate(lines)])
    if any(point.study is not None for point in points):
        axes.set_title("rings: the study's own figures", fontsize=8, color=palette.MUTED, loc="right")


def _scale(axes: Axes, x: Scale, y: Scale, xs: Sequence[float], ys: Sequence[float]) -> None:
    ticks = sorted(set(xs))
    if x.base:
        log_axis(axes, "x", xs, x.tick, base=x.base)
        axes.set_xlim(min(xs) / 1.12, max(xs) * 1.12)
    else:
        linear_axis(axes, "x", x.tick)
        margin = 0.04 * (max(xs) - min(xs) or 1)
        axes.set_xlim(min(xs) - margin, max(xs) + margin)
    if len(ticks) <= _MOST_TICKS:
        axes.set_xticks(ticks)
    if y.base:
        ends = (min(ys) * 0.6, max(ys) * 1.8)
        log_axis(axes, "y", ends, y.tick, base=y.base)
        axes.set_ylim(*ends)
    else:
        linear_axis(axes, "y", y.tick)
        axes.set_ylim(0, max(ys) * 1.12)


def _line(axes: Axes, index: int, line: StudyLine) -> None:
    colour = palette.colour(index)
    xs = [point.x for point in line.points]
    axes.plot(
        xs, [point.ours for point in line.points], color=colour, linestyle=palette.line(index),
        marker=palette.marker(index), markersize=3.5, zorder=3,
    )  # fmt: skip
    band = [(point.x, *point.interval) for point in line.points if point.interval]
    if len(band) > 1:
        band_x, lows, highs = zip(*band, strict=True)
        axes.fill_between(band_x, lows, highs, color=colour, alpha=0.14, linewidth=0)
    rings = [(point.x, point.study) for point in line.points if point.study is not None]
    if rings:
        ring_x, ring_y = zip(*rings, strict=True)
        axes.plot(
            ring_x, ring_y, linestyle="none", marker="o", markersize=8.5, markerfacecolor="none",
            markeredgecolor=colour, markeredgewidth=1.0, zorder=4,
        )  # fmt: skip
