"""One reference set on the page."""

from __future__ import annotations

from typing import NamedTuple


class ReferenceSet(NamedTuple):
    """Relative errors of ``n`` predictions of ``what`` against ``reference``; None: not on record.

    ``standing``: nothing fitted, held out (fitted on other points), or partly fitted. ``bar`` bounds the median,
    ``p90_bar`` the p90.
    """

    reference: str
    what: str
    standing: str
    n: int
    median: float
    p90: float | None
    worst: float | None
    command: str
    bar: float | None = None
    p90_bar: float | None = None

    @property
    def met(self) -> str:
        """Whether the bar holds, where there is one."""
        if self.bar is None:
            return ""
        tail = self.p90_bar is None or self.p90 is None or self.p90 <= self.p90_bar
        return "yes" if self.median <= self.bar and tail else "NO"
