"""A latency against the arrival rate, a line a policy: interval bands, the SLO's line, the knees shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import End, label_ends
from servewise.report.charts.scales import count_tick, linear_axis, log_axis, named, seconds_tick
from servewise.report.wording import figure, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LANE = 0.03  # of the axes' height, for each policy's knee
_LOG_FROM = 8  # a larger spread of values is drawn on a logarithmic axis


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """At ``rate_per_s``, a latency [s] with its 95% interval, if known; ``stable`` False: it grows with the run."""

    rate_per_s: float
    value_s: float
    interval_s: tuple[float, float] | None = None
    stable: bool = True


@dataclass(frozen=True, slots=True)
class LatencyLine:
    """One policy's points in order of rate, and the rates between which it stops keeping up."""

    name: str
    points: tuple[LatencyPoint, ...]
    knee_per_s: tuple[float, float] | None = None


def latency_chart(
    metric: str, lines: Sequence[LatencyLine], *, limit_s: float | None = None, in_steps: bool = False
) -> str:
    """``metric`` names the latency and its percentile ("TTFT p95"); ``limit_s`` is the SLO's bound [s]."""
    word = figure if in_steps else seconds
    said = [
        f"{line.name}: {word(line.points[0].value_s)} at {figure(line.points[0].rate_per_s)} to "
        f"{word(line.points[-1].value_s)} at {figure(line.points[-1].rate_per_s)}"
        + (f", saturating at {figure(line.knee_per_s[0])} to {figure(line.knee_per_s[1])}" if line.knee_per_s else "")
        for line in lines
    ]
    aim = f" The target is {word(limit_s)}." if limit_s else ""
    per = "per step" if in_steps else "per second"
    return draw(
        f"{metric} against the arrival rate",
        f"Requests {per}. {'; '.join(said)}.{aim}",
        lambda axes: _plot(axes, metric, lines, limit_s, in_steps),
        height_in=3.3,
    )


def _plot(axes: Axes, metric: str, lines: Sequence[LatencyLine], limit_s: float | None, in_steps: bool) -> None:
    for index, line in enumerate(lines):
        _line(axes, index, line)
        _knee(axes, index, line)
    values = [point.value_s for line in lines for point in line.points] + ([limit_s] if limit_s else [])
    rates = [point.rate_per_s for line in lines for point in line.points]
    room = LANE * len(lines) if any(line.knee_per_s for line in lines) else 0.0
    tick = count_tick if in_steps else seconds_tick
    if max(values) > _LOG_FROM * min(values):
        ends = (min(values) * 0.7, max(values) * (max(values) / min(values)) ** room * 1.4)
        log_axis(axes, "y", ends, tick)
        axes.set_ylim(*ends)
    else:
        linear_axis(axes, "y", tick)
        axes.set_ylim(0, max(values) * (1.12 + room))
    linear_axis(axes, "x", count_tick)
    axes.set_xlim(0, max(rates) * 1.02)
    named(axes, "Requests per step" if in_steps else "Requests per second", f"{metric} (steps)" if in_steps else metric)
    if limit_s:
        _limit(axes, limit_s, tick(limit_s))
    label_ends(
        axes, [End(line.points[-1].value_s, line.name, palette.colour(index)) for index, line in enumerate(lines)]
    )
    if any(not point.stable for line in lines for point in line.points):
        axes.set_title(
            "hollow: unstable, grows with the length of the run", fontsize=8, color=palette.MUTED, loc="right"
        )


def _line(axes: Axes, index: int, line: LatencyLine) -> None:
    colour = palette.colour(index)
    rates = [point.rate_per_s for point in line.points]
    axes.plot(rates, [point.value_s for point in line.points], color=colour, linestyle=palette.line(index), zorder=3)
    for stable in (True, False):
        kept = [point for point in line.points if point.stable is stable]
        axes.plot(
            [point.rate_per_s for point in kept],
            [point.value_s for point in kept],
            linestyle="none",
            marker=palette.marker(index),
            color=colour,
            markerfacecolor=colour if stable else palette.PAPER,
            markeredgewidth=1.2,
            zorder=4,
        )
    band = [
        (point.rate_per_s, *point.interval_s) for point in line.points if point.interval_s and point.interval_s[0] > 0
    ]
    if len(band) > 1:
        xs, lows, highs = zip(*band, strict=True)
        axes.fill_between(xs, lows, highs, color=colour, alpha=0.13, linewidth=0)


def _knee(axes: Axes, index: int, line: LatencyLine) -> None:
    """A bar along the top over the rates between which the policy saturates; each policy has its lane."""
    if not line.knee_per_s:
        return
    low, high = line.knee_per_s
    lane = 1.0 - (index + 0.5) * LANE
    axes.fill_between(
        [low, max(high, low * 1.005)], lane - 0.35 * LANE, lane + 0.35 * LANE, transform=axes.get_xaxis_transform(),
        color=palette.colour(index), alpha=0.55, linewidth=0, zorder=2,
    )  # fmt: skip


def _limit(axes: Axes, limit_s: float, words: str) -> None:
    axes.axhline(limit_s, color=palette.BAD, linewidth=1.2, linestyle=(0, (4, 2)), zorder=2)
    axes.annotate(
        f"target {words}",
        xy=(0.01, limit_s),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        color=palette.BAD,
        fontsize=8,
    )
