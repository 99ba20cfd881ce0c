"""What is said about a sweep beside its result: lost tasks, kept results."""

from __future__ import annotations

import logging

_log = logging.getLogger("servewise.executing")


def note(text: str) -> None:
    """One line for people; a program that wants it takes the logger ``servewise.executing``, else stderr has it."""
    _log.warning("servewise: %s", text)


def counted(count: int, noun: str) -> str:
    """``count`` of them.

    >>> counted(1, "task"), counted(2000, "task")
    ('1 task', '2,000 tasks')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
