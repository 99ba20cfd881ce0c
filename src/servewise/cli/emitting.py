"""``--emit`` and ``--emit-dir``: a plan's launch as a script on stdout, or as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from servewise.answer import Answer
from servewise.cli.quantities import TEXT, Several
from servewise.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
TARGETS = "vllm|sglang|trtllm|llamacpp|kubernetes"


def emit_options(function: F) -> F:
    """--emit and --emit-dir."""
    text = "Print what starts the recommendation."
    emit = click.option("--emit", type=Several(TEXT), default=(), metavar=f"{TARGETS},...", help=text)
    folder = "Write it as files into this folder instead."
    return emit(click.option("--emit-dir", metavar="D", help=folder)(function))


def emit_launches(answer: Answer, emit: tuple[str, ...], folder: str | None) -> None:
    """What was asked for, after the answer: scripts and files by name, into ``folder`` or onto stdout.

    With --json stdout holds the document alone, which has it all under ``launch``.
    """
    files = files_of(answer, emit)
    if folder is not None:
        _write(Path(folder), files)
    elif emit and not click.get_current_context().params.get("as_json"):
        for name, text in files.items():
            click.echo(f"\n# ---- {name}\n{text}", nl=False)


def files_of(answer: Answer, emit: tuple[str, ...]) -> dict[str, str]:
    """File name -> text of the launches that ``emit`` names, all where it names none; a manifest needs no script."""
    from servewise.ask.launching import launch_from
    from servewise.plan.flags.every import script_of

    found: dict[str, str] = {}
    for engine in emit or tuple(answer.result["launch"]):
        if engine not in answer.result["launch"]:
            continue
        launch = launch_from(answer.result["launch"], engine)
        found |= {} if engine == "kubernetes" else {f"{engine}.sh": script_of(launch)}
        found |= launch.files
    _check_text(found)
    return found


def _check_text(files: dict[str, str]) -> None:
    """Raises InputError where the model's path is no text: bytes that are not UTF-8 cannot stand in a file of text."""
    for name, text in files.items():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError("the model's path is not UTF-8", where=name, hint="name it by a path that is") from error


def _write(folder: Path, files: dict[str, str]) -> None:
    from servewise.cli.showing import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"no folder can be made there ({error.strerror})", where=str(folder)) from error
    for name, text in files.items():
        write_whole(folder / name, text)
        click.echo(f"wrote {folder / name}", err=True)
