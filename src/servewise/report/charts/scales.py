"""Axes with units: ticks in words that people read, on linear and logarithmic scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PREFIXES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def seconds_tick(value: float, _position: object = None) -> str:
    """A time on an axis: 20 ms, 1 s, 300 s."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= size * 0.999:
            return f"{_plain(value / size)} {unit}"
    return "0" if value == 0 else f"{value:.0e} s"


def count_tick(value: float, _position: object = None) -> str:
    """A count on an axis: 8, 512, 16k, 2M."""
    for size, unit in _PREFIXES:
        if abs(value) >= size * 0.999:
            return f"{_plain(value / size)}{unit}"
    return f"{value:.0e}".replace("e-0", "e-") if 0 < value < 1e-3 else f"{value:.4g}"


def binary_tick(value: float, _position: object = None) -> str:
    """A count that doubles: 2,048 in full, then 16k, 128k, 1M in the field's binary sense."""
    for size, unit in ((2**20, "M"), (2**10, "k")):
        if value >= 10_000 and value >= size and value % size == 0:
            return f"{value / size:,.0f}{unit}"
    return f"{value:,.4g}" if value < 1 else f"{value:,.0f}" if value < 1e7 else count_tick(value)


def percent_tick(value: float, _position: object = None) -> str:
    """A share on an axis."""
    return f"{value * 100:.0f}%"


def gib_tick(value: float, _position: object = None) -> str:
    """Bytes on an axis, in GiB."""
    return f"{value / 2**30:.4g}"


def dollar_tick(value: float, _position: object = None) -> str:
    """US dollars on an axis."""
    return f"${value:,.4g}"


def times_tick(value: float, _position: object = None) -> str:
    """A ratio on an axis."""
    return f"{value:.3g}×"


def log_axis(
    axes: Axes, which: Literal["x", "y"], values: Sequence[float], word: Callable[..., str], *, base: int = 10
) -> None:
    """A logarithmic axis (``which``: x or y) with few, plain ticks: 1-2-5 within two decades, decades beyond."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min(values), max(values)
    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(_powers_of_two(low, high) if base == 2 else _decades(low, high)))
    axis.set_major_formatter(FuncFormatter(word))
    axis.set_minor_locator(NullLocator())


def linear_axis(
    axes: Axes, which: Literal["x", "y"], word: Callable[..., str], *, most: int = 6, whole: bool = False
) -> None:
    """A linear axis with at most ``most`` ticks."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(nbins=most, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(word))


def _decades(low: float, high: float) -> list[float]:
    start, end = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    span = math.log10(high / low)
    factors = (1, 2, 5) if span <= 2 else (1, 3) if span <= 3.2 else (1,)
    stride = max(1, round(span / 7))
    return [factor * 10.0**power for power in range(start, end + 1, stride) for factor in factors]


def _powers_of_two(low: float, high: float) -> list[float]:
    start, end = math.floor(math.log2(low)), math.ceil(math.log2(high))
    stride = max(1, math.ceil((end - start) / 9))
    return [2.0**power for power in range(start, end + 1, stride)]


def named(axes: Axes, x: str, y: str) -> None:
    """The axes' names, each with its unit."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def only_grid(axes: Axes, which: Literal["x", "y"]) -> None:
    """Grid lines across ``which`` axis only."""
    axes.grid(False)
    axes.grid(True, axis=which)
