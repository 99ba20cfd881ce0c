"""Sums and maxima of lines: a decode step is the largest of a few lines in the KV tokens it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product

from servewise.steptime.estimator import Line

Lines = Sequence[Line]


def largest(lines: Iterable[Line], context_tokens: float, windowed_tokens: float) -> float:
    """The maximum of ``lines`` at that many KV tokens [s]; 0 without lines."""
    values = (base + full * context_tokens + windowed * windowed_tokens for base, full, windowed in lines)
    return max(values, default=0.0)


def summed(kinds: Iterable[Lines]) -> tuple[Line, ...]:
    """The lines whose maximum is the sum of each kind's maximum.

    Kinds that read one of full and windowed context are added along that axis first, where lines that are never the
    largest drop out, so that many kinds of layer leave few lines.
    """
    full: list[Lines] = []
    windowed: list[Lines] = []
    both: list[Lines] = []
    for lines in kinds:
        home = full if not any(line.per_windowed_token_s for line in lines) else both
        if home is both and not any(line.per_context_token_s for line in lines):
            home = windowed
        home.append(lines)
    nothing: Lines = [Line(0.0, 0.0)]
    along = reduce(lambda one, other: envelope(_added(one, other)), full, nothing)
    across = reduce(lambda one, other: _turned(envelope(_turned(_added(one, other)))), windowed, nothing)
    mixed = reduce(lambda one, other: _undominated(_added(one, other)), both, nothing)
    return tuple(_undominated(_added(_added(along, across), mixed)))


def envelope(lines: Iterable[Line]) -> list[Line]:
    """Of lines in full context alone, those that are the largest somewhere from 0 tokens on, by slope."""
    kept: list[Line] = []
    for line in sorted(lines, key=lambda each: (each.per_context_token_s, each.base_s)):
        while kept and _overtakes(line, kept[-1]) <= (_overtakes(kept[-1], kept[-2]) if len(kept) > 1 else 0.0):
            kept.pop()
        kept.append(line)
    return kept


def _overtakes(steep: Line, flat: Line) -> float:
    """The KV tokens from which ``steep`` is above ``flat``."""
    rise = steep.per_context_token_s - flat.per_context_token_s
    return (flat.base_s - steep.base_s) / rise if rise > 0 else 0.0


def _added(one: Lines, other: Lines) -> list[Line]:
    return [Line(a + d, b + e, c + f) for (a, b, c), (d, e, f) in product(one, other)]


def _turned(lines: Lines) -> list[Line]:
    return [Line(base, windowed, full) for base, full, windowed in lines]


def _undominated(lines: Lines) -> list[Line]:
    """The lines without those that another is nowhere below."""
    different = list(dict.fromkeys(lines))
    return [
        line
        for line in different
        if not any(all(a >= b for a, b in zip(each, line, strict=True)) for each in different if each != line)
    ]
