"""Lines of start-up logs as data: which fact each one states, in which unit, and which worker's counts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from servewise.units import GIB, MIB

Value = float | int | str
Reduce = Callable[[list[Value]], Value]

NUMBER = r"(-?\d{1,15}(?:\.\d{1,15})?)"
COUNT = r"(\d[\d,]{0,24})"
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def gib(text: str) -> float:
    """Binary gigabytes, which vLLM and SGLang print as GiB or GB."""
    return float(text) * GIB


def mib(text: str) -> float:
    """Binary megabytes."""
    return float(text) * MIB


def count(text: str) -> int:
    """A whole number, with or without thousands separators."""
    return int(text.replace(",", ""))


def largest(values: list[Value]) -> Value:
    """The largest of the workers' values."""
    return max(values, key=_order)


def smallest(values: list[Value]) -> Value:
    """The smallest of the workers' values."""
    return min(values, key=_order)


def last(values: list[Value]) -> Value:
    """The value printed last."""
    return values[-1]


def first(values: list[Value]) -> Value:
    """The value printed first."""
    return values[0]


def _order(value: Value) -> float:
    return -math.inf if isinstance(value, str) else float(value)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One fact in one wording: group 1 of ``regex``, read by ``read``, several values made one by ``reduce``."""

    fact: str
    regex: re.Pattern[str]
    read: Callable[[str], Value] = str
    reduce: Reduce = last


def pattern(fact: str, regex: str, read: Callable[[str], Value] = str, reduce: Reduce = last) -> Pattern:
    """A Pattern from its expression, letter case ignored."""
    return Pattern(fact, re.compile(regex, re.IGNORECASE), read, reduce)


def plain_lines(text: str) -> Iterable[str]:
    """The lines without colour codes; a progress bar's carriage returns end lines too."""
    return ANSI.sub("", text.replace("\r", "\n")).split("\n")


def match_all(patterns: Iterable[Pattern], lines: Iterable[str]) -> Mapping[str, list[Value]]:
    """Every value that the lines state, by fact; numbers too large to be true are left out."""
    found: dict[str, list[Value]] = {}
    wanted = tuple(patterns)
    for line in lines:
        for each in wanted:
            for match in each.regex.finditer(line[:20_000]):
                value = each.read(match.group(1))
                if isinstance(value, str) or abs(value) < 1e18:
                    found.setdefault(each.fact, []).append(value)
    return found


def reduced(patterns: Iterable[Pattern], found: Mapping[str, list[Value]]) -> dict[str, Value]:
    """One value a fact, by the reduction of the first pattern that states it."""
    rules: dict[str, Reduce] = {}
    for each in patterns:
        rules.setdefault(each.fact, each.reduce)
    return {fact: rules[fact](values) for fact, values in found.items()}
