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
    axes: Axes,
    which: Literal["x", "y"],
    values: Sequence[float],
    word: Callable[..., str],
    *,
    base: int = 10,
    most: int = 8,
) -> None:
    """A logarithmic axis (``which``: x or y) over ``values`` with at most ``most`` plain ticks."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min(values), max(values)
    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(_powers_of_two(low, high) if base == 2 else decades(low, high, most)))
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


def decades(low: float, high: float, most: int) -> list[float]:
    """Ticks 1-2-5, 1-3 or 1 a decade, or at every few decades: the closest of which at most ``most`` lie within.

    >>> decades(1.5, 30, 8), decades(1, 1000, 4)
    ([2.0, 5.0, 10.0, 20.0], [1.0, 10.0, 100.0, 1000.0])
    """
    start, end = math.floor(math.log10(low)), math.ceil(math.log10(high))
    choices = [((1, 2, 5), 1), ((1, 3), 1), *(((1,), stride) for stride in range(1, end - start + 2))]
    for factors, stride in choices:
        ticks = [factor * 10.0**power for power in range(start, end + 1, stride) for factor in factors]
        within = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(within) <= most:
            return within if len(within) > 1 else even(low, high)
    return [low, high]


def even(low: float, high: float) -> list[float]:
    """Two to seven even ticks within, for a span too short for 1-2-5.

    >>> even(1.1, 1.9)
    [1.2, 1.4, 1.6, 1.8]
    """
    power = 10.0 ** math.floor(math.log10(high - low)) if high > low else low
    step = next(size * power for size in (0.2, 0.25, 0.5, 1, 2) if (high - low) / (size * power) < 6)
    return [float(f"{index * step:.12g}") for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


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
