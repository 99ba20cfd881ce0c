"""A command line asked by a program: its Answer instead of text, its mistake with the option that it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from servewise.answer import Answer
from servewise.cli.failure import exit_code_of, line_of
from servewise.errors import InputError, ServewiseError

Progress = Callable[[int, int], None]


@dataclass
class Asked:
    """Put in a command's context: the command leaves its Answer here and tells its progress, printing nothing."""

    progress: Progress
    answer: Answer | None = None

    def take(self, answer: Answer) -> None:
        """What the command has to show."""
        self.answer = answer


def asked() -> Asked | None:
    """Who asks the running command, if a program does."""
    context = click.get_current_context(silent=True)
    return context.find_object(Asked) if context else None


def answer_of(arguments: Sequence[str], progress: Progress | None = None) -> Answer:
    """The Answer of the command line ``servewise ARGUMENTS``, by the command's own parser.

    Raises the errors of the rooms as they are, and InputError for a line that cannot be parsed, ``where`` being the
    option's name (``kv_heads``). ``progress`` takes (done, in all).
    """
    from servewise.cli.main import servewise

    found = Asked(progress or (lambda _done, _total: None))
    try:
        with servewise.make_context("servewise", list(arguments), obj=found) as context:
            servewise.invoke(context)
    except ServewiseError:
        raise
    except (click.ClickException, OSError, MemoryError) as error:
        if exit_code_of(error) is None:
            raise
        raise _mistake(error) from error
    if found.answer is None:
        raise InputError("gives no answer to show", where=arguments[0] if arguments else "servewise")
    return found.answer


def _mistake(error: BaseException) -> InputError:
    if isinstance(error, click.BadParameter) and error.param is not None:
        return InputError((error.message or error.format_message()).rstrip("."), where=error.param.name or "")
    return InputError(line_of(error).removeprefix("servewise: "))
