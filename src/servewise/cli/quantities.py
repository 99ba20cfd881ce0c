"""Numbers with optional units on the command line: 80GB, 2TB/s, 312T, 50ms, 8k; lists with commas."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from servewise.units import GB, GIB, KB, KIB, MB, MIB, TB, TIB

_NUMBER = re.compile(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(.*)", re.IGNORECASE)
BYTES: Mapping[str, float] = {
    "": 1, "b": 1, "k": KB, "kb": KB, "m": MB, "mb": MB, "g": GB, "gb": GB, "t": TB, "tb": TB,
    "ki": KIB, "kib": KIB, "mi": MIB, "mib": MIB, "gi": GIB, "gib": GIB, "ti": TIB, "tib": TIB,
}  # fmt: skip
FLOPS: Mapping[str, float] = {
    prefix + unit: factor
    for prefix, factor in (("", 1), ("m", 1e6), ("g", 1e9), ("t", 1e12), ("p", 1e15), ("e", 1e18))
    for unit in ("", "flop/s", "flops", "flop")
}
SECONDS: Mapping[str, float] = {"": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60, "h": 3600, "d": 86_400}
COUNT: Mapping[str, float] = {"": 1, "k": 1e3, "m": 1e6}
RATE: Mapping[str, float] = {"": 1, "/s": 1, "rps": 1, "/min": 1 / 60, "/h": 1 / 3600}
BANDWIDTH: Mapping[str, float] = {unit + tail: factor for unit, factor in BYTES.items() for tail in ("", "/s", "ps")}


class Quantity(click.ParamType[float]):
    """A number with one of ``units`` behind it."""

    def __init__(self, name: str, units: Mapping[str, float], example: str) -> None:
        self.name, self.units, self.example = name, units, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number in SI."""
        if not isinstance(value, str):
            return float(value)
        found = _NUMBER.fullmatch(value.strip())
        unit = self.units.get(found[2].strip().lower()) if found else None
        number = float(found[1]) * unit if found and unit is not None else math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is no {self.name}; write it like {self.example}", param, ctx)
        return number


class Whole(click.ParamType[int]):
    """A whole number, with k for thousands allowed."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        if isinstance(value, int):
            return value
        number = Quantity(self.name, COUNT, "8 or 8k").convert(value, param, ctx)
        if number != int(number):
            self.fail(f"{value!r} is no whole number", param, ctx)
        return int(number)


class Several(click.ParamType[tuple[Any, ...]]):
    """A list with commas; ranges of whole numbers are not guessed."""

    def __init__(self, each: click.ParamType[Any]) -> None:
        self.each = each
        self.name = f"{each.name},..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """The values, in order."""
        if not isinstance(value, str):
            return tuple(value)
        parts = [part.strip() for part in value.split(",")]
        if not all(parts):
            self.fail(f"{value!r} has an empty place; write it like 1,4,8", param, ctx)
        return tuple(self.each.convert(part, param, ctx) for part in parts)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The last value, behind the others."""
        before, comma, last = incomplete.rpartition(",")
        found = self.each.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{each.value}", type=each.type) for each in found]


FLOPS_PER_S = Quantity("FLOP/s", FLOPS, "312T or 3.12e14")
BYTES_PER_S = Quantity("bandwidth", BANDWIDTH, "2TB/s or 2e12")
MEMORY = Quantity("memory size", BYTES, "80GB, 79.25GiB or 8e10")
DURATION = Quantity("duration", SECONDS, "50ms or 0.05")
PER_S = Quantity("rate", RATE, "0.5 or 30/min")
NUMBER = Quantity("number", {"": 1}, "0.7")
SHARE = Quantity("share", {"": 1, "%": 0.01}, "5% or 0.05")
PRICE = Quantity("price", {"": 1, "$": 1}, "3.00")
WHOLE = Whole()
TEXT = click.STRING
