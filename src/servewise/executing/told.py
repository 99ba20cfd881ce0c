"""What a task gave, as it crosses from one process to another: a result, or a mistake with its sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from servewise.errors import InputError, RunFailed

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


class Mistake(NamedTuple):
    """An error of ours in plain words: exceptions with arguments of their own do not survive being pickled."""

    wrong_input: bool
    what: str
    where: str = ""
    hint: str = ""

    def raised(self) -> InputError | RunFailed:
        """The error, to be raised where the result was expected."""
        return InputError(self.what, where=self.where, hint=self.hint) if self.wrong_input else RunFailed(self.what)


def told(function: Callable[[S, T], R], shared: S, task: T) -> R | Mistake:
    """``function(shared, task)``, or the mistake that it makes."""
    try:
        return function(shared, task)
    except InputError as error:
        return Mistake(True, error.what, error.where, error.hint)
    except RunFailed as error:
        return Mistake(False, str(error))


def heard(said: Any) -> Any:
    """The result that was told; raises the mistake."""
    if isinstance(said, Mistake):
        raise said.raised()
    return said
