"""Prefix reuse: the share of prompt tokens found in the cache, by depth in the prompt and by the cache's size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.scales import count_tick, linear_axis, log_axis, named, percent_tick
from servewise.report.wording import count, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float]]


def depth_chart(points: Points) -> str:
    """At each offset, the share of the prompts that reach it whose tokens there are found: (offset, share)."""
    return draw(
        "Prefix reuse by depth in the prompt", _said("From token", points), lambda axes: _plot_depth(axes, points)
    )


def capacity_chart(points: Points) -> str:
    """Hit rate by the number of tokens the cache holds: (tokens, share), tokens above zero."""
    return draw("Prefix reuse by size of the cache", _said("With", points), lambda axes: _plot_capacity(axes, points))


def _said(lead: str, points: Points) -> str:
    return f"{lead} {'; '.join(f'{count(x)}: {percent(share)}' for x, share in points)}."


def _plot_depth(axes: Axes, points: Points) -> None:
    xs, shares = zip(*points, strict=True)
    axes.step(xs, shares, where="post", color=palette.colour(0))
    axes.fill_between(xs, shares, step="post", color=palette.colour(0), alpha=0.16, linewidth=0)
    axes.set_xlim(0, max(xs) or 1)
    linear_axis(axes, "x", count_tick)
    _shares(axes, "Position in the prompt (tokens)", "Prompts found in the cache so far")


def _plot_capacity(axes: Axes, points: Points) -> None:
    xs, shares = zip(*points, strict=True)
    axes.plot(xs, shares, color=palette.colour(0), marker="o")
    log_axis(axes, "x", xs, count_tick)
    _shares(axes, "Tokens the cache holds", "Prompt tokens found in the cache")


def _shares(axes: Axes, x_name: str, y_name: str) -> None:
    axes.set_ylim(0, 1)
    linear_axis(axes, "y", percent_tick)
    named(axes, x_name, y_name)
