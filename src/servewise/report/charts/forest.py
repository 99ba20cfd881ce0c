"""Ratios with their intervals, a row each: left or right of 1, or over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.bars import name_rows
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import short
from servewise.report.charts.scales import log_axis, only_grid, times_tick
from servewise.report.wording import times

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Ratio(NamedTuple):
    """B over A of one metric, with its 95% interval if known, and the verdict on B if there is one."""

    name: str
    value: float
    interval: tuple[float, float] | None
    verdict: str = ""


_COLOURS = {"better": palette.GOOD, "worse": palette.BAD}


def forest_chart(ratios: Sequence[Ratio], title: str, of: str = "B over A") -> str:
    """``of`` says what stands over what. The axis is logarithmic, so that twice and half are as far from 1."""
    said = "; ".join(", ".join(filter(None, (f"{each.name} {times(each.value)}", each.verdict))) for each in ratios)
    return draw(title, f"{of}: {said}.", lambda axes: _plot(axes, ratios, of), height_in=0.9 + 0.27 * len(ratios))


def _plot(axes: Axes, ratios: Sequence[Ratio], of: str) -> None:
    reach = [1.0, *(ratio.value for ratio in ratios)]
    reach += [end for ratio in ratios if ratio.interval for end in ratio.interval]
    low, high = min(reach), max(reach)
    spread = max((high / low) ** 0.12, 1.03)
    ends = (low / spread, high * spread)
    for place, ratio in enumerate(ratios):
        colour = _COLOURS.get(ratio.verdict, palette.MUTED)
        if ratio.interval:
            axes.plot(ratio.interval, [place] * 2, color=colour, linewidth=1.6)
        filled = colour if ratio.verdict in _COLOURS else palette.PAPER
        axes.plot([ratio.value], [place], marker="o", color=colour, markerfacecolor=filled, markeredgewidth=1.2)
        axes.annotate(
            times(ratio.value), xy=(1.0, place), xycoords=("axes fraction", "data"), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8, color=colour,
        )  # fmt: skip
    axes.axvline(1.0, color=palette.INK, linewidth=1)
    log_axis(axes, "x", ends, times_tick, most=6)
    axes.set(xlim=ends, ylim=(len(ratios) - 0.5, -0.5), xlabel=of)
    name_rows(axes, [short(ratio.name, 24) for ratio in ratios])
    only_grid(axes, "x")
