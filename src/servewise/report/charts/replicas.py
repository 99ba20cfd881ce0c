"""How many replicas there are over time: those that serve, and on top those that start, drain or are down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.scales import count_tick, linear_axis, named, seconds_tick
from servewise.report.wording import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATES = ("up", "starting", "draining", "down")


class Count(NamedTuple):
    """From ``at_s`` on, so many replicas in each state."""

    at_s: float
    up: float
    starting: float
    draining: float
    down: float


def replicas_chart(counts: Sequence[Count], end_s: float, name: str) -> str:
    """``counts`` in order of time, to ``end_s``, of the fleet called ``name``."""
    said = f"From {figure(counts[0].up)} to at most {figure(max(each.up for each in counts))} that serve"
    return draw(
        f"Replicas over time, {name}",
        f"{said}; {len(counts) - 1} changes.",
        lambda axes: _plot(axes, counts, end_s),
        height_in=2.6,
    )


def _plot(axes: Axes, counts: Sequence[Count], end_s: float) -> None:
    times = [each.at_s for each in counts] + [end_s]
    below = [0.0] * len(times)
    for index, state in enumerate(STATES):
        values = [float(getattr(each, state)) for each in counts]
        if not any(values):
            continue
        tops = [base + value for base, value in zip(below, [*values, values[-1]], strict=True)]
        axes.fill_between(
            times, below, tops, step="post", color=palette.colour(index), alpha=0.5, linewidth=0, label=state
        )
        below = tops
    linear_axis(axes, "y", count_tick)
    linear_axis(axes, "x", seconds_tick)
    axes.set(xlim=(0, end_s), ylim=(0, max(below) * 1.25))
    named(axes, "Time since the run's start", "Replicas")
    axes.legend(loc="upper left", fontsize=8, frameon=False, ncols=4)
