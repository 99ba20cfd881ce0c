"""A run over its time: tokens/s, requests that the client had open, and what the server said of itself meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import End, label_ends
from servewise.report.charts.scales import count_tick, linear_axis, named, seconds_tick
from servewise.report.wording import figure, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Series(NamedTuple):
    """One quantity over time [s]: a count of requests, or where ``share`` a share of one."""

    name: str
    times_s: tuple[float, ...]
    values: tuple[float, ...]
    share: bool = False


def timeline_chart(tokens: Series, counts: Sequence[Series], window_s: tuple[float, float] | None, load: str) -> str:
    """``tokens`` per second as an area; ``counts`` as lines on an axis of their own, shares scaled to its height.

    The steady window, from which the figures come, is the part that is not shaded.
    """
    said = [f"{series.name}: at most {figure(max(series.values))}" for series in counts if series.values]
    window = f" Steady from {seconds(window_s[0])} to {seconds(window_s[1])}." if window_s else ""
    return draw(
        f"The run over time, {load}",
        f"Tokens/s at most {figure(max(tokens.values))}. {'; '.join(said)}.{window}",
        lambda axes: _plot(axes, tokens, counts, window_s),
        height_in=3.3,
    )


def _plot(axes: Axes, tokens: Series, counts: Sequence[Series], window_s: tuple[float, float] | None) -> None:
    end = max(tokens.times_s)
    axes.fill_between(tokens.times_s, tokens.values, step="mid", color=palette.colour(0), alpha=0.22, linewidth=0)
    linear_axis(axes, "y", count_tick, most=5)
    linear_axis(axes, "x", seconds_tick)
    axes.set(xlim=(0, end), ylim=(0, max(tokens.values) * 1.15))
    named(axes, "Time since the run's start", "Output tokens/s (area)")
    if window_s:
        for start, stop in ((0.0, window_s[0]), (window_s[1], end)):
            axes.axvspan(start, max(stop, start), color=palette.MUTED, alpha=0.13, linewidth=0)
    _counts(axes, counts)


def _counts(axes: Axes, counts: Sequence[Series]) -> None:
    top = max((max(series.values) for series in counts if series.values and not series.share), default=1.0) * 1.2 or 1.0
    scale = axes.get_ylim()[1]
    ends = []
    for index, series in enumerate(counts, start=1):
        heights = [value * scale if series.share else value / top * scale for value in series.values]
        colour = palette.colour(index)
        axes.plot(series.times_s, heights, color=colour, linestyle=palette.line(index), linewidth=1.3)
        most = max(series.values)
        ends.append(End(heights[-1], f"{series.name} (≤ {f'{most:.0%}' if series.share else figure(most)})", colour))
    label_ends(axes, ends)
