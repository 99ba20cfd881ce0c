"""A headline as data: what stands first on a page and over a terminal's tables."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.report.wording import UNKNOWN


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its unit, under its label."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Headline:
    """``text`` is the answer, ``detail`` what binds or why; ``good`` is False where nothing meets the aim."""

    text: str
    detail: str = ""
    numbers: tuple[Number, ...] = ()
    good: bool = True


NONE = Headline("")


def known(*pairs: tuple[str, str]) -> tuple[Number, ...]:
    """The numbers of these labels and values, without those that are not known."""
    return tuple(Number(label, value) for label, value in pairs if value != UNKNOWN)
