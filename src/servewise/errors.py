"""Mistakes that a user can mend, each as one clear line.

ServewiseError
├── InputError            wrong input: what, where, what to do; exit code 2
│   └── UnknownName       a name that is in no catalogue, with the nearest ones
└── RunFailed             a server or a run failed; exit code 3

"Does not fit" and "no plan meets the SLO" are answers, not exceptions.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ServewiseError(Exception):
    """Base of every error that is shown as one line instead of a traceback."""

    exit_code = 1


class InputError(ServewiseError):
    """Wrong input. ``what`` is wrong, ``where`` it stands, ``hint`` says what to do."""

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(": ".join(part for part in (where, what) if part) + (f"; {hint}" if hint else ""))


class UnknownName(InputError):
    """A name that no catalogue holds; the message offers the nearest names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, where: str = "", hint: str = "") -> None:
        self.name, self.nearest = name, nearest_names(name, known)
        offer = f"did you mean {', '.join(self.nearest)}?" if self.nearest else hint
        super().__init__(f"unknown {kind} {name!r}", where=where, hint=offer)


class RunFailed(ServewiseError):
    """A server or a run failed through no fault of the input."""

    exit_code = 3


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The known names nearest to ``name``, best first.

    >>> nearest_names("a100-80", ["a100-80gb", "h200", "t4"])
    ('a100-80gb',)
    """
    names = sorted(set(known))
    close = difflib.get_close_matches(name.lower(), names, n=count, cutoff=0.5)
    return tuple(close or [each for each in names if name.lower() in each][:count])
