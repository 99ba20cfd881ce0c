"""What fits: one accelerator's memory as a bar of its parts, and by how much it is short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from servewise.report.charts import palette
from servewise.report.charts.canvas import draw
from servewise.report.charts.labels import short
from servewise.report.charts.scales import gib_tick, linear_axis, only_grid
from servewise.report.wording import percent, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = "Memory of one accelerator"
_FREE = ("not used", "unused", "free", "reserve", "outside the")
_OWN = {"weights": 0, "kv cache": 2}  # the same colour in every chart
_OTHERS = (1, 3, 4, 5, 6)


class Part(NamedTuple):
    """A part of the memory: its name and its bytes."""

    name: str
    bytes: float


def memory_chart(parts: Sequence[Part], memory_bytes: float, short_by_bytes: float = 0.0) -> str:
    """The parts [bytes] laid end to end against ``memory_bytes``; what is short hangs over, hatched."""
    words = [f"{short(part.name)} {size(part.bytes)} ({percent(part.bytes / memory_bytes)})" for part in parts]
    if short_by_bytes > 0:
        words.append(f"short by {size(short_by_bytes)}")
    height = 1.4 + 0.17 * len(words)
    return draw(
        _TITLE,
        f"Of {size(memory_bytes)}: {'; '.join(words)}.",
        lambda axes: _plot(axes, parts, memory_bytes, short_by_bytes, words),
        height_in=height,
    )


def _plot(axes: Axes, parts: Sequence[Part], memory: float, short: float, words: Sequence[str]) -> None:
    start = 0.0
    for index, part in enumerate(parts):
        _bar(axes, start, part.bytes, words[index], **_face(index, part))
        start += part.bytes
    if short > 0:
        face = {"facecolor": "none", "edgecolor": palette.BAD, "hatch": "////", "linewidth": 1.2}
        _bar(axes, memory, short, words[-1], **face)
    end = max(start, memory + max(short, 0.0)) * 1.02
    axes.axvline(memory, color=palette.INK, linewidth=1.4)
    axes.annotate(
        f"{size(memory)}",
        xy=(memory, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right" if memory > end / 2 else "left",
        fontsize=8,
    )
    axes.set(xlim=(0, end), ylim=(-0.5, 0.5), yticks=[], xlabel="GiB on one accelerator")
    axes.spines["left"].set_visible(False)
    linear_axis(axes, "x", gib_tick)
    _round_ticks(axes, end)
    only_grid(axes, "x")
    axes.figure.legend(loc="outside lower left", ncols=1, handlelength=1.1)


def _round_ticks(axes: Axes, end: float) -> None:
    """Ticks at whole GiB, which steps of decimal bytes would miss."""
    step = next((each for each in (1, 2, 5, 10, 20, 40, 50, 100) if end / 2**30 / each <= 7), None)
    if step and end >= 2**30:
        axes.set_xticks([index * step * 2**30 for index in range(int(end / 2**30 / step) + 1)])


def _bar(axes: Axes, start: float, width: float, label: str, **face: object) -> None:
    axes.barh([0], [width], left=[start], height=0.72, label=label, **face)  # type: ignore[arg-type]


def _face(index: int, part: Part) -> dict[str, object]:
    edge = {"edgecolor": palette.PAPER, "linewidth": 0.8}
    if any(word in part.name.lower() for word in _FREE):
        return {"facecolor": palette.GRID, **edge}
    own = _OWN.get(part.name.lower())
    return {"facecolor": palette.colour(_OTHERS[index % len(_OTHERS)] if own is None else own), **edge}
