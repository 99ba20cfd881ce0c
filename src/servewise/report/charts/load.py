"""What a server does by load: a line for each figure, bars of its 95% interval, streams on a doubling axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import End, label_ends, short
from servewise.report.charts.scales import binary_tick, count_tick, linear_axis, log_axis, named, seconds_tick
from servewise.report.wording import figure, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOG_FROM = 8  # a larger spread of values is drawn on a logarithmic axis


class LoadPoint(NamedTuple):
    """At ``load`` (streams or requests/s), a value with its 95% interval, if known; ``stable`` False: it grows."""

    load: float
    value: float
    interval: tuple[float, float] | None = None
    stable: bool = True


class LoadLine(NamedTuple):
    """Points in order of load."""

    name: str
    points: tuple[LoadPoint, ...]


def load_chart(
    metric: str, lines: Sequence[LoadLine], *, unit: str, limit: float | None = None, in_seconds: bool = True
) -> str:
    """``metric`` names the value (TTFT, Output tokens/s), ``unit`` the load ("Streams at once"); all values above 0."""
    word = seconds if in_seconds else figure
    said = [
        f"{line.name}: {word(line.points[0].value)} at {figure(line.points[0].load)} to "
        f"{word(line.points[-1].value)} at {figure(line.points[-1].load)}"
        for line in lines
    ]
    return draw(
        f"{metric} by load",
        f"{unit}. {'; '.join(said)}.",
        lambda axes: _plot(axes, metric, lines, unit, limit, seconds_tick if in_seconds else count_tick),
        height_in=3.3,
    )


def _plot(
    axes: Axes, metric: str, lines: Sequence[LoadLine], unit: str, limit: float | None, tick: Callable[..., str]
) -> None:
    for index, line in enumerate(lines):
        _line(axes, index, line)
    loads = [point.load for line in lines for point in line.points]
    low, high = _reach(lines, limit)
    _upright(axes, (low, high), (low * 0.8, high * 1.3), high * 1.12, tick)
    if min(loads) > 0 and max(loads) > 4 * min(loads):
        log_axis(axes, "x", loads, binary_tick, base=2)
        axes.set_xlim(min(loads) * 0.85, max(loads) * 1.15)
    else:
        linear_axis(axes, "x", count_tick)
        axes.set_xlim(0, max(loads) * 1.05)
    named(axes, unit, metric)
    if limit:
        axes.axhline(limit, color=palette.BAD, linewidth=1.2, linestyle=(0, (4, 2)), zorder=2)
    label_ends(
        axes,
        [End(line.points[-1].value, line.name, palette.colour(index)) for index, line in enumerate(lines) if line.name],
    )


def _upright(
    axes: Axes, reach: tuple[float, float], ends: tuple[float, float], top: float, tick: Callable[..., str]
) -> None:
    """The axis of values: logarithmic over ``ends`` where they reach far, else from 0 to ``top``."""
    low, high = reach
    if high > _LOG_FROM * low:
        log_axis(axes, "y", ends, tick)
        axes.set_ylim(*ends)
    else:
        linear_axis(axes, "y", tick)
        axes.set_ylim(0, top)


def _reach(lines: Sequence[LoadLine], limit: float | None) -> tuple[float, float]:
    """The least and the largest that is drawn; of an interval no more than thrice the largest value."""
    values = [point.value for line in lines for point in line.points] + ([limit] if limit else [])
    ends = [point.interval for line in lines for point in line.points if point.interval]
    least = min([min(values), *(max(low, min(values) / 3) for low, _ in ends)])
    return least, max([max(values), *(min(high, 3 * max(values)) for _, high in ends)])


def _line(axes: Axes, index: int, line: LoadLine) -> None:
    colour = palette.colour(index)
    loads = [point.load for point in line.points]
    axes.plot(loads, [point.value for point in line.points], color=colour, linestyle=palette.line(index), zorder=3)
    for point in line.points:
        if point.interval and 0 < point.interval[0] <= point.interval[1]:
            axes.plot([point.load] * 2, point.interval, color=colour, linewidth=1.1, zorder=2)
        axes.plot(
            [point.load], [point.value], linestyle="none", marker=palette.marker(index), color=colour,
            markerfacecolor=colour if point.stable else palette.PAPER, markeredgewidth=1.2, zorder=4,
        )  # fmt: skip


class Tradeoff(NamedTuple):
    """A load's throughput [tokens/s] and latency [s], and how the load is called."""

    tokens_per_s: float
    latency_s: float
    load: str


def tradeoff_chart(metric: str, lines: Sequence[tuple[str, Sequence[Tradeoff]]]) -> str:
    """``metric`` against output tokens/s, a point for each load, named; further right and lower is better."""
    said = "; ".join(
        f"{name + ' ' if name else ''}{point.load}: {figure(point.tokens_per_s)} tokens/s at {seconds(point.latency_s)}"
        for name, points in lines
        for point in points
    )
    return draw(
        f"{metric} against throughput",
        f"{said}. Further right and lower is better.",
        lambda axes: _tradeoffs(axes, metric, lines),
        height_in=3.3,
    )


def _tradeoffs(axes: Axes, metric: str, lines: Sequence[tuple[str, Sequence[Tradeoff]]]) -> None:
    for index, (_, points) in enumerate(lines):
        colour = palette.colour(index)
        xs, ys = [point.tokens_per_s for point in points], [point.latency_s for point in points]
        axes.plot(
            xs, ys, color=colour, linestyle=palette.line(index), marker=palette.marker(index), zorder=3, clip_on=False
        )
        for point in points:
            axes.annotate(
                short(point.load, 14), xy=(point.tokens_per_s, point.latency_s), xytext=(4, 5),
                textcoords="offset points", fontsize=7.5, color=palette.MUTED,
            )  # fmt: skip
    every = [point for _, points in lines for point in points]
    low, high = min(point.latency_s for point in every), max(point.latency_s for point in every)
    _upright(axes, (low, high), (low * 0.7, high * 1.5), high * 1.18, seconds_tick)
    linear_axis(axes, "x", count_tick)
    axes.set_xlim(0, max(point.tokens_per_s for point in every) * 1.12)
    named(axes, "Output tokens per second", metric)
    named_lines = [(name, points) for name, points in lines if name]
    label_ends(
        axes,
        [End(points[-1].latency_s, name, palette.colour(index)) for index, (name, points) in enumerate(named_lines)],
    )
