"""An answer on its way out: tables or one JSON document on stdout, a file written whole or not at all."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servewise.answer import Answer
from servewise.atomic import replace_whole
from servewise.cli.asked import asked
from servewise.cli.commandline import command_line
from servewise.errors import InputError

if TYPE_CHECKING:
    from servewise.report.sections import Answers

HTML = (".html", ".htm")
KINDS = (".html", ".md", ".json")
READER_LEFT = 141  # 128 + SIGPIPE, what a shell reports for any program whose reader has gone
Show = Callable[[Answer], None]


def answering(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """--json, --output and --beside; the command gets ``show``, which takes the Answer, and returns its exit code."""

    @functools.wraps(function)
    def command(*args: Any, as_json: bool, output: str | None, beside: bool, **kwargs: Any) -> int | None:
        program = asked()
        if program is not None:
            return function(*args, show=program.take, **kwargs)
        targets = checked_targets(output, beside=beside)
        refuse_sources(targets, kwargs.values())
        return function(*args, show=functools.partial(show, as_json=as_json, targets=targets), **kwargs)

    text = "Write the answer to FILE too: a report (.html, .md), else the JSON document."
    to_file = click.option("--output", "-o", metavar="FILE", help=text)(beside_option(command))
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(to_file)


def beside_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--beside."""
    return click.option("--beside", is_flag=True, help="With --output: HTML, Markdown and JSON, under one name.")(
        function
    )


def checked_targets(output: str | None, *, beside: bool) -> tuple[Path, ...]:
    """Where the answer goes: nowhere, to the file named, or with ``beside`` to one of each kind of that name."""
    if output is None:
        if beside:
            raise InputError("goes beside a file", where="beside", hint="name it with --output")
        return ()
    first = checked_target(output)
    others = [first.with_suffix(kind) for kind in KINDS if kind != first.suffix.lower()] if beside else []
    return (first, *(checked_target(str(each)) for each in others))


def refuse_sources(targets: Sequence[Path], given: Iterable[object]) -> None:
    """InputError for a target that would replace what is read: a file among the values ``given``, or of a run
    directory, or a folder of them, a run's header."""
    if not any(target.exists() for target in targets):
        return
    from servewise.records.run_directory import HEADER

    several = (each if isinstance(each, tuple) else (each,) for each in given)
    sources = {Path(each).resolve() for values in several for each in values if isinstance(each, str) and each}
    for target in targets:
        place = target.resolve()
        if place in sources or (place.name == HEADER and place.exists() and not sources.isdisjoint(place.parents)):
            raise InputError("is one of the sources", where=str(target), hint="another name for what is written")


def show(answer: Answer, *, as_json: bool, targets: Sequence[Path] = ()) -> None:
    """``answer`` to ``targets`` first, then to stdout."""
    for target in targets:
        write_whole(target, document(answer, target))
    try:
        _print(answer, as_json=as_json)
        if sys.stdout:  # None where it was closed before we began
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_LEFT)


def document(answer: Answer, target: Path) -> str:
    """What the file at ``target`` is to hold, by what its name ends in."""
    if target.suffix.lower() not in (*HTML, ".md"):
        return answer.dumps() + "\n"
    from servewise.report.sections import title_of

    return drawn(answer, target, title=title_of(answer))


def drawn(answers: Answers, target: Path, *, title: str) -> str:
    """A report for ``target``: Markdown where its name ends in .md, else HTML; both say what command made them."""
    if target.suffix.lower() == ".md":
        from servewise.report.markdown import render_markdown

        return render_markdown(answers, title=title, command=command_line())
    from servewise.report.html import render_html

    return render_html(answers, title=title, command=command_line())


def checked_target(output: str) -> Path:
    """The path, if a file can be put there; so that a long run does not end in a mistyped folder.

    A device or pipe is refused: what is written whole is moved over its target, which would take its place.
    """
    target = Path(output)
    if target.is_dir():
        raise InputError("is a folder", where=output, hint="name a file in it")
    if target.exists() and not target.is_file():
        raise InputError("is a device or pipe, no file", where=output, hint="name a file; stdout has the answer anyway")
    if not target.absolute().parent.is_dir():
        raise InputError("its folder does not exist", where=output, hint="make it first")
    if not os.access(target.absolute().parent, os.W_OK):
        raise InputError("its folder cannot be written to", where=output)
    return target


def write_whole(target: Path, text: str) -> None:
    """``text`` in the file at ``target``, or the file as it was: written beside it, then moved over it.

    A link stays a link. Raises InputError where the file cannot be written, or ``target`` is a device or pipe.
    """
    checked_target(str(target))
    try:
        replace_whole(target.resolve(), text.encode("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", where=str(target), hint="another place") from error


def _print(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        click.echo(answer.dumps())
        return
    from servewise.report.terminal import print_answer, terminal_console

    print_answer(answer, terminal_console())
