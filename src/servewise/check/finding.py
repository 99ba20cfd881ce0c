"""A finding: which mistake, where it stands, why it costs something here, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from servewise.check.mistakes import MISTAKES

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Place:
    """Where: ``line`` and ``column`` from 1 (0: the whole file), and the option, field or words meant."""

    line: int = 0
    column: int = 0
    option: str = ""

    def to_json(self) -> dict[str, Any]:
        """The place as JSON; what is not known is null."""
        return {"line": self.line or None, "column": self.column or None, "option": self.option or None}

    def called(self, option: str) -> Place:
        """The same place for another option."""
        return Place(self.line, self.column, option)

    def below(self, lines: int) -> Place:
        """The place ``lines`` further down; that of the whole file stays."""
        return Place(self.line + lines if self.line else 0, self.column, self.option)


NOWHERE = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One mistake found. ``why`` carries the figures of this case, ``cure`` what to do, ``figures`` the same for
    scripts in SI units.

    ``severity`` error: cannot work, or not as meant; warning: costs speed, memory or trust; note: worth a look.
    """

    code: str
    why: str
    cure: str
    place: Place = NOWHERE
    severity: Severity
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {
            "code": self.code,
            "severity": self.severity,
            "title": MISTAKES[self.code].title,
            "where": self.place.to_json(),
            "why": self.why,
            "cure": self.cure,
            "source": MISTAKES[self.code].source,
            "figures": dict(self.figures),
        }


def found(
    code: str,
    place: Place,
    why: str = "",
    *,
    cure: str = "",
    severity: Severity | None = None,
    **figures: Any,
) -> Finding:
    """The finding of ``code`` at ``place``; what is not given is as the catalogue of mistakes has it."""
    known = MISTAKES[code]
    return Finding(
        code=code,
        why=why or known.why,
        cure=cure or known.cure,
        place=place,
        severity=severity or known.severity,
        figures=figures,
    )


def ordered(findings: list[Finding]) -> tuple[Finding, ...]:
    """The worst first, then by place; the same mistake at the same place once."""
    unique = {(each.code, each.place, each.why): each for each in findings}
    return tuple(
        sorted(unique.values(), key=lambda each: (SEVERITIES.index(each.severity), each.place.line, each.place.column))
    )
