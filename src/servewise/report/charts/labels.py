"""Direct labels: the name of a line at its end, pushed apart where lines meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 30
_GAP = 0.075  # of the axes' height: one line of text


def short(name: str, longest: int = LONGEST) -> str:
    """``name``, cut where it would take the chart's room.

    >>> short("continuous"), short("a" * 40, 8)
    ('continuous', 'aaaaaaa…')
    """
    return name if len(name) <= longest else name[: longest - 1] + "…"


class End(NamedTuple):
    """Where a line ends, in data coordinates, its name and its colour."""

    y: float
    name: str
    colour: str


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Write each name right of the axes at its line's end; limits and scales must be set before."""
    heights = [_share(axes, end.y) for end in ends]
    for end, height in zip(ends, spread(heights, _GAP), strict=True):
        axes.annotate(
            short(end.name),
            xy=(1.0, height),
            xycoords="axes fraction",
            xytext=(5, 0),
            textcoords="offset points",
            color=end.colour,
            va="center",
            ha="left",
            fontsize=8,
        )


def _share(axes: Axes, y: float) -> float:
    point = axes.transData.transform((axes.get_xlim()[1], y))
    return float(min(1.0, max(0.0, axes.transAxes.inverted().transform(point)[1])))


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """``heights`` moved apart to at least ``gap``, their order kept, within 0 and 1 where they find room.

    >>> [round(each, 2) for each in spread([0.5, 0.5, 0.1], 0.1)]
    [0.5, 0.6, 0.1]
    """
    order = sorted(range(len(heights)), key=lambda index: (heights[index], index))
    placed = [heights[index] for index in order]
    for index in range(1, len(placed)):
        placed[index] = max(placed[index], placed[index - 1] + gap)
    excess = max(0.0, placed[-1] - 1.0) if placed else 0.0
    for index in range(len(placed) - 1, -1, -1):
        ceiling = 1.0 if index == len(placed) - 1 else placed[index + 1] - gap
        placed[index] = min(placed[index], ceiling) if excess else placed[index]
    found = [0.0] * len(heights)
    for position, index in enumerate(order):
        found[index] = placed[position]
    return found
