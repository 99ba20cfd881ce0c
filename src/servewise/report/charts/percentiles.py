"""The spread of latencies at one load: a line from the median to the 99th percentile for each, marked on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servewise.report.charts import palette
from servewise.report.charts.bars import name_rows
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import short
from servewise.report.charts.scales import count_tick, log_axis, only_grid, seconds_tick
from servewise.report.wording import figure, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = ("p50", "p90", "p95", "p99")
_MARKERS = ("o", "|", "|", "D")


@dataclass(frozen=True, slots=True)
class Spread:
    """A latency's name and its percentiles [s], in the order of MARKS, all above zero."""

    name: str
    values_s: tuple[float, ...]


def percentiles_chart(spreads: Sequence[Spread], *, in_steps: bool = False) -> str:
    """One row a latency, on a logarithmic axis."""
    word = figure if in_steps else seconds
    said = [
        f"{spread.name}: {', '.join(f'{name} {word(value)}' for name, value in pairs)}"
        for spread in spreads
        for pairs in [zip(MARKS, spread.values_s, strict=True)]
    ]
    return draw(
        "Latency percentiles",
        f"{'; '.join(said)}.",
        lambda axes: _plot(axes, spreads, in_steps),
        height_in=1.0 + 0.34 * len(spreads),
    )


def _plot(axes: Axes, spreads: Sequence[Spread], in_steps: bool) -> None:
    for place, spread in enumerate(spreads):
        _row(axes, place, spread, figure if in_steps else seconds)
    values = [value for spread in spreads for value in spread.values_s]
    margin = max(3.0, (max(values) / min(values)) ** 0.3)  # room for the words at both ends
    ends = (min(values) / margin, max(values) * margin)
    log_axis(axes, "x", ends, count_tick if in_steps else seconds_tick, most=6)
    axes.set(xlim=ends, ylim=(len(spreads) - 0.4, -0.6))
    axes.set_xlabel("Latency (steps)" if in_steps else "Latency")
    name_rows(axes, [short(spread.name) for spread in spreads])
    only_grid(axes, "x")
    axes.set_title("dot p50, bars p90 and p95, diamond p99", fontsize=8, color=palette.MUTED, loc="right")


def _row(axes: Axes, place: int, spread: Spread, write: Callable[[object], str]) -> None:
    colour = palette.colour(0)
    axes.plot(spread.values_s, [place] * len(spread.values_s), color=colour, linewidth=1.4)
    for value, marker in zip(spread.values_s, _MARKERS, strict=True):
        axes.plot([value], [place], marker=marker, color=colour, markersize=5.5, markeredgewidth=1.3)
    for value, side in ((spread.values_s[0], -1), (spread.values_s[-1], 1)):
        axes.annotate(
            write(value), xy=(value, place), xytext=(7 * side, 0), textcoords="offset points",
            ha="left" if side > 0 else "right", va="center", fontsize=8,
        )  # fmt: skip
