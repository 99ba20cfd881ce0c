"""Step time against batch: the arithmetic's and the memory's own times, the floor they make, and the ridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import End, label_ends
from servewise.report.charts.scales import binary_tick, log_axis, named, seconds_tick
from servewise.report.wording import figure, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class StepPoint(NamedTuple):
    """A step at ``batch``: its time and its parts [s]; the floor is max(compute, memory) where it is not given."""

    batch: float
    compute_s: float
    memory_s: float
    step_s: float
    floor_s: float


class Ridge(NamedTuple):
    """A batch at which compute meets memory, and how it is called."""

    batch: float
    name: str


def steptime_chart(points: Sequence[StepPoint], ridges: Sequence[Ridge] = (), *, phase: str = "decode") -> str:
    """Both axes logarithmic; at least two points, all times and batches above zero."""
    first, last = points[0], points[-1]
    said = f"{seconds(first.step_s)} at batch {figure(first.batch)}, {seconds(last.step_s)} at {figure(last.batch)}."
    crossing = " ".join(f"{ridge.name} at batch {figure(ridge.batch)}." for ridge in ridges)
    return draw(
        f"Time of one {phase} step against batch",
        f"{said} {crossing}".strip(),
        lambda axes: _plot(axes, points, ridges),
    )


def _plot(axes: Axes, points: Sequence[StepPoint], ridges: Sequence[Ridge]) -> None:
    batches = [point.batch for point in points]
    times = [value for point in points for value in point[1:]]
    lines = (
        ("compute alone", [point.compute_s for point in points], palette.colour(1), palette.line(1), 1.4, ""),
        ("memory alone", [point.memory_s for point in points], palette.colour(2), palette.line(3), 1.4, ""),
        ("floor", [point.floor_s for point in points], palette.MUTED, palette.line(2), 1.2, ""),
        ("step", [point.step_s for point in points], palette.colour(0), "-", 2.2, "o"),
    )
    for _, values, colour, dash, width, mark in lines:
        axes.plot(batches, values, color=colour, linestyle=dash, linewidth=width, marker=mark or None, clip_on=False)
    inside = [ridge for ridge in ridges if ridge.batch <= batches[-1] * 4]
    log_axis(axes, "x", [*batches, *(ridge.batch for ridge in inside)], binary_tick, base=2)
    ends = (min(times) * 0.8, max(times) * 1.5)
    log_axis(axes, "y", ends, seconds_tick)
    axes.set_xlim(batches[0], max([batches[-1], *(ridge.batch * 1.15 for ridge in inside)]))
    axes.set_ylim(*ends)
    named(axes, "Batch (sequences in one step)", "Time of one step")
    for level, ridge in enumerate(inside):
        _ridge(axes, ridge, level)
    label_ends(
        axes, [End(values[-1], name, colour) for name, values, colour, *_ in lines if name != "floor" or _apart(points)]
    )


def _apart(points: Sequence[StepPoint]) -> bool:
    """Whether the floor is a line of its own, off the larger of compute and memory."""
    return any(point.floor_s < 0.98 * max(point.compute_s, point.memory_s) for point in points)


def _ridge(axes: Axes, ridge: Ridge, level: int) -> None:
    axes.axvline(ridge.batch, color=palette.INK, linewidth=0.9, linestyle=(0, (1, 2)))
    right_half = axes.transAxes.inverted().transform(axes.transData.transform((ridge.batch, 1)))[0] > 0.5
    axes.annotate(
        f"{ridge.name}: batch {figure(round(ridge.batch))}",
        xy=(ridge.batch, 0.03 + 0.09 * level),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if right_half else 4, 0),
        textcoords="offset points",
        ha="right" if right_half else "left",
        fontsize=8,
        color=palette.INK,
    )
