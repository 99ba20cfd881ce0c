"""A figure of the study beside ours, with a verdict and the rule of that verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow:
    """One figure.

    ``case`` says which (``{"tokens": 20}``), ``quantity`` of what, in ``unit``. ``printed`` is the study's figure as
    it stands there and ``study`` its value. ``agrees`` follows ``tolerance``; None where the study gives nothing to
    judge by (machine-specific, or shown for explanation). ``interval`` is ours, where chance has a part in it.
    """

    case: Mapping[str, Any]
    quantity: str
    printed: str
    study: float
    ours: float
    agrees: bool | None
    tolerance: str
    unit: str = ""
    note: str = ""
    interval: Interval | None = None

    def to_json(self) -> dict[str, Any]:
        """CONTRACT's ``{..., study, ours, agrees, tolerance}``, case first."""
        return {
            **self.case,
            "quantity": self.quantity,
            "unit": self.unit,
            "study": self.study,
            "study_printed": self.printed,
            "ours": self.ours,
            "interval": list(self.interval) if self.interval else None,
            "agrees": self.agrees,
            "tolerance": self.tolerance,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTable:
    """One table of the study, figure by figure. ``note`` holds for the whole table."""

    name: str
    title: str
    rows: tuple[StudyRow, ...]
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every row that can be judged agrees."""
        return all(row.agrees is not False for row in self.rows)

    def select(self, quantity: str, **case: object) -> tuple[StudyRow, ...]:
        """The rows of ``quantity`` whose case has the given values, in order."""
        return tuple(
            row
            for row in self.rows
            if row.quantity == quantity and all(row.case.get(key) == value for key, value in case.items())
        )

    def to_json(self) -> dict[str, Any]:
        """CONTRACT's ``{name, rows}``."""
        return {
            "name": self.name,
            "title": self.title,
            "note": self.note,
            "agrees": self.agrees,
            "rows": [row.to_json() for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class StudySummary:
    """How many figures agree, and which do not (table name, row)."""

    judged: int
    agreeing: int
    not_judged: int
    disagreeing: tuple[tuple[str, StudyRow], ...] = field(default=())

    @property
    def all_agree(self) -> bool:
        """Whether no judged figure disagrees."""
        return not self.disagreeing
