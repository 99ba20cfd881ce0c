"""Speculation: speed-up by draft length, a line for each acceptance rate or batch; and the best by acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import End, label_ends
from servewise.report.charts.scales import binary_tick, count_tick, linear_axis, log_axis, named, times_tick
from servewise.report.wording import figure, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class SpeedupLine:
    """``points`` are (x, speed-up over plain decoding) in order of x."""

    name: str
    points: tuple[tuple[float, float], ...]


def speculation_chart(lines: Sequence[SpeedupLine]) -> str:
    """Speed-up against draft length K; each line's best K is marked."""
    said = [f"{line.name}: best {times(best[1])} at K = {figure(best[0])}" for line in lines for best in [_best(line)]]
    return draw(
        "Speed-up by draft length",
        f"Over plain decoding. {'; '.join(said)}.",
        lambda axes: _plot(axes, lines, "Draft tokens K", marked=True),
    )


def acceptance_chart(lines: Sequence[SpeedupLine]) -> str:
    """The best speed-up against the acceptance rate, a line for each draft cost."""
    said = [f"{line.name}: {times(line.points[0][1])} to {times(line.points[-1][1])}" for line in lines]
    return draw(
        "Best speed-up by acceptance rate",
        f"Each at its best K. {'; '.join(said)}.",
        lambda axes: _plot(axes, lines, "Acceptance rate", marked=False),
    )


def batch_chart(lines: Sequence[SpeedupLine]) -> str:
    """The best speed-up against the batch; batches above zero."""
    said = [f"{times(speedup)} at batch {figure(batch)}" for line in lines for batch, speedup in line.points]
    return draw(
        "Best speed-up by batch", f"Each at its best K. {'; '.join(said)}.", lambda axes: _plot_batches(axes, lines)
    )


def _plot_batches(axes: Axes, lines: Sequence[SpeedupLine]) -> None:
    _plot(axes, lines, "Batch (sequences in one step)", marked=False)
    batches = [point[0] for line in lines for point in line.points]
    log_axis(axes, "x", batches, binary_tick, base=2)
    axes.set_xlim(min(batches) / 1.1, max(batches) * 1.1)


def _best(line: SpeedupLine) -> tuple[float, float]:
    return max(line.points, key=lambda point: point[1])


def _plot(axes: Axes, lines: Sequence[SpeedupLine], x_name: str, *, marked: bool) -> None:
    for index, line in enumerate(lines):
        axes.plot(*zip(*line.points, strict=True), color=palette.colour(index), linestyle=palette.line(index))
        shown = [_best(line)] if marked else line.points
        axes.plot(
            *zip(*shown, strict=True),
            color=palette.colour(index),
            marker=palette.marker(index),
            linestyle="none",
            clip_on=False,
            markersize=5,
        )
    xs = [point[0] for line in lines for point in line.points]
    ys = [point[1] for line in lines for point in line.points]
    axes.set_xlim(min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1)
    axes.set_ylim(min(0.9, min(ys) * 0.95), max(1.1, max(ys) * 1.06))
    axes.axhline(1.0, color=palette.MUTED, linewidth=1.0, linestyle=(0, (4, 2)))
    axes.annotate(
        "no gain", xy=(0.99, 1.0), xycoords=("axes fraction", "data"), xytext=(0, 3), textcoords="offset points",
        ha="right", fontsize=8, color=palette.MUTED,
    )  # fmt: skip
    linear_axis(axes, "x", count_tick, whole=marked)
    linear_axis(axes, "y", times_tick)
    named(axes, x_name, "Speed-up over plain decoding")
    if len(lines) > 1 or lines[0].name:
        label_ends(
            axes, [End(line.points[-1][1], line.name, palette.colour(index)) for index, line in enumerate(lines)]
        )
