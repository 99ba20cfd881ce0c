"""When a figure of ours agrees with one that the study prints: the rules, each with its tolerance in words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from servewise.study.row import Interval, StudyRow


def value(printed: str) -> float:
    """The number that the study prints.

    >>> value("13,520"), value("4e-15")
    (13520.0, 4e-15)
    """
    return float(printed.replace(",", ""))


def last_place(printed: str) -> float:
    """One unit in the last printed place.

    >>> last_place("0.42"), last_place("803"), last_place("4e-15")
    (0.01, 1.0, 1e-15)
    """
    exponent = Decimal(printed.replace(",", "")).as_tuple().exponent
    return float(Decimal(1).scaleb(int(exponent)))


def rounds_to(printed: str, ours: float) -> bool:
    """Whether ``ours`` lies within half a unit of the study's last place.

    >>> rounds_to("13.8", 13.839), rounds_to("13.8", 13.86)
    (True, False)
    """
    return abs(ours - value(printed)) <= 0.5000001 * last_place(printed)


def exact(
    case: Mapping[str, Any], quantity: str, printed: str, ours: float, unit: str = "", note: str = ""
) -> StudyRow:
    """Equal to the digit: counts."""
    return StudyRow(
        case=case, quantity=quantity, printed=printed, study=value(printed), ours=ours, unit=unit, note=note,
        agrees=ours == value(printed), tolerance="exact",
    )  # fmt: skip


def rounded(
    case: Mapping[str, Any], quantity: str, printed: str, ours: float, unit: str = "", note: str = ""
) -> StudyRow:
    """Equal in all digits that the study prints: arithmetic."""
    return StudyRow(
        case=case, quantity=quantity, printed=printed, study=value(printed), ours=ours, unit=unit, note=note,
        agrees=rounds_to(printed, ours), tolerance=f"rounds to {printed}",
    )  # fmt: skip


def at_most(
    case: Mapping[str, Any], quantity: str, printed: str, ours: float, limit: float, unit: str = "", note: str = ""
) -> StudyRow:
    """Ours is at most ``limit``: a bound on an error that chance or rounding fixes."""
    return StudyRow(
        case=case, quantity=quantity, printed=printed, study=value(printed), ours=ours, unit=unit, note=note,
        agrees=ours <= limit, tolerance=f"at most {limit:g}",
    )  # fmt: skip


def within_factor(
    case: Mapping[str, Any], quantity: str, printed: str, ours: float, factor: float, unit: str = "", note: str = "",
    interval: Interval | None = None,
) -> StudyRow:  # fmt: skip
    """The two differ by at most ``factor`` (the study's rounding counted in its favour): order of magnitude."""
    low, high = value(printed) - last_place(printed) / 2, value(printed) + last_place(printed) / 2
    return StudyRow(
        case=case, quantity=quantity, printed=printed, study=value(printed), ours=ours, unit=unit, note=note,
        agrees=low / factor <= ours <= high * factor, tolerance=f"within a factor of {factor:g}", interval=interval,
    )  # fmt: skip


def lies_in(printed: str, interval: Interval) -> bool:
    """Whether a number that rounds to the study's figure lies in ``interval``.

    >>> lies_in("58", (58.4, 60)), lies_in("58", (58.6, 60))
    (True, False)
    """
    half = last_place(printed) / 2
    return interval[0] - half <= value(printed) <= interval[1] + half


def within_interval(
    case: Mapping[str, Any], quantity: str, printed: str, ours: float, interval: Interval, tolerance: str,
    unit: str = "", note: str = "",
) -> StudyRow:  # fmt: skip
    """The study's figure, as rounded, lies within our ``interval``: chance."""
    return StudyRow(
        case=case, quantity=quantity, printed=printed, study=value(printed), ours=ours, unit=unit, note=note,
        agrees=lies_in(printed, interval), tolerance=tolerance, interval=interval,
    )  # fmt: skip


def holds(case: Mapping[str, Any], quantity: str, ours: bool, note: str = "") -> StudyRow:
    """A statement of the study (1: it holds) that must hold here too."""
    return StudyRow(
        case=case, quantity=quantity, printed="holds", study=1.0, ours=float(ours), note=note, agrees=ours,
        tolerance="must hold",
    )  # fmt: skip


def shown(
    case: Mapping[str, Any], quantity: str, printed: str, ours: float, why: str, unit: str = "", note: str = "",
    interval: Interval | None = None,
) -> StudyRow:  # fmt: skip
    """Shown beside the study's figure and not judged, because of ``why``."""
    return StudyRow(
        case=case, quantity=quantity, printed=printed, study=value(printed), ours=ours, unit=unit, note=note,
        agrees=None, tolerance=f"not judged: {why}", interval=interval,
    )  # fmt: skip
