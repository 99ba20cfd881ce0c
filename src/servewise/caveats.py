"""Caveats: what a reader must know beside a result, each with its cure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caveat:
    """One warning that travels with a result.

    ``code`` is stable (scripts match on it), ``message`` says what is doubtful, ``cure`` what to do.
    """

    code: str
    message: str
    cure: str

    def to_json(self) -> dict[str, str]:
        """The caveat as CONTRACT's ``{"code", "message", "cure"}``."""
        return {"code": self.code, "message": self.message, "cure": self.cure}


def unique(caveats: tuple[Caveat, ...]) -> tuple[Caveat, ...]:
    """The caveats without repeats, in the order in which they first came."""
    return tuple(dict.fromkeys(caveats))
