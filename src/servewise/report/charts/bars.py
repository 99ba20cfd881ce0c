"""Horizontal bars with their values beside them: cost by deployment, sensitivity of the winner."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import short
from servewise.report.charts.scales import dollar_tick, linear_axis, only_grid
from servewise.report.wording import dollars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 12
_NAME_WIDTH = 26


class Cost(NamedTuple):
    """A deployment and what a million output tokens cost on it [US dollars]."""

    name: str
    usd_per_million_output_tokens: float


class Swing(NamedTuple):
    """An input, and the plan's rate over its own when the input is lower and when it is higher, by ``change``."""

    name: str
    ratios: tuple[tuple[str, float], ...]


def cost_chart(costs: Sequence[Cost]) -> str:
    """Dollars per million output tokens, cheapest first; at most twelve deployments."""
    shown = sorted(costs, key=lambda cost: cost.usd_per_million_output_tokens)[:_MOST]
    said = "; ".join(f"{cost.name} {dollars(cost.usd_per_million_output_tokens)}" for cost in shown)
    names = [_wrapped(cost.name) for cost in shown]
    height = 0.75 + sum(0.16 + 0.15 * (1 + name.count("\n")) for name in names)
    return draw(
        "Cost by deployment",
        f"Per million output tokens: {said}.",
        lambda axes: _costs(axes, shown, names),
        height_in=height,
    )


def _wrapped(name: str) -> str:
    return "\n".join(textwrap.wrap(name, _NAME_WIDTH, max_lines=3, placeholder=" …"))


def _costs(axes: Axes, costs: Sequence[Cost], names: Sequence[str]) -> None:
    values = [cost.usd_per_million_output_tokens for cost in costs]
    places = list(range(len(costs)))
    colours = [palette.colour(0) if index == 0 else palette.colour(5) for index in places]
    axes.barh(places, values, color=colours, height=0.6)
    for place, value in zip(places, values, strict=True):
        axes.annotate(
            dollars(value), xy=(value, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
        )
    name_rows(axes, names)
    axes.set(
        ylim=(len(costs) - 0.45, -0.55), xlim=(0, max(values) * 1.16), xlabel="US dollars per million output tokens"
    )
    linear_axis(axes, "x", dollar_tick, most=5)
    only_grid(axes, "x")


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """The rows' names left of the axes; each line is set by itself, flush right in whatever font the page has."""
    axes.set_yticks([])
    for place, name in enumerate(names):
        lines = name.split("\n")
        for index, line in enumerate(lines):
            rise = (len(lines) - 1) / 2 - index
            axes.annotate(
                line, xy=(0, place), xycoords=("axes fraction", "data"), xytext=(-6, 10.5 * rise),
                textcoords="offset points", ha="right", va="center", fontsize=8,
            )  # fmt: skip


def sensitivity_chart(swings: Sequence[Swing]) -> str:
    """How far the plan's highest rate moves with each input; the widest swing on top."""
    shown = sorted(swings, key=lambda swing: -max(abs(ratio - 1) for _, ratio in swing.ratios))[:_MOST]
    said = "; ".join(
        f"{swing.name} {', '.join(f'{change}: {ratio - 1:+.0%}' for change, ratio in swing.ratios)}" for swing in shown
    )
    return draw(
        "How far the winner moves",
        f"Change of the highest rate within the target: {said}.",
        lambda axes: _swings(axes, shown),
        height_in=0.8 + 0.34 * len(shown),
    )


def _swings(axes: Axes, swings: Sequence[Swing]) -> None:
    widest = max(abs(ratio - 1) for swing in swings for _, ratio in swing.ratios) or 0.01
    for place, swing in enumerate(swings):
        for change, ratio in swing.ratios:
            up = ratio >= 1
            axes.barh([place], [ratio - 1], color=palette.colour(0 if up else 1), height=0.6)
            axes.annotate(
                short(change, 12), xy=(ratio - 1, place), xytext=(4 if up else -4, 0), textcoords="offset points",
                va="center", ha="left" if up else "right", fontsize=8,
            )  # fmt: skip
    axes.axvline(0, color=palette.INK, linewidth=1)
    name_rows(axes, [_wrapped(swing.name) for swing in swings])
    axes.set(
        ylim=(len(swings) - 0.5, -0.5),
        xlim=(-widest * 1.4, widest * 1.4),
        xlabel="Change of the highest rate within the target",
    )
    linear_axis(axes, "x", lambda value, _=None: f"{value:+.0%}" if value else "0", most=5)
    only_grid(axes, "x")
