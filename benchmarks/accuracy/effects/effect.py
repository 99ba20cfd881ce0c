"""One published effect beside ours."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """``published`` in words with its source; ``low`` and ``high`` bound it as a factor, ``ours`` is our factor.

    ``conditions``: on what; ``why``: where ours lies outside, what is known of the cause.
    """

    name: str
    conditions: str
    published: str
    source: str
    low: float
    high: float
    ours: float
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether ours lies within the published range."""
        return self.low <= self.ours <= self.high

    def to_json(self) -> dict[str, object]:
        """For the record."""
        return asdict(self) | {"holds": self.holds}
