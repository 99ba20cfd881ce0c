"""How a mistake reads: ``servewise: where: what; hint`` on one line, with CONTRACT's exit code."""

from __future__ import annotations

import click

from servewise.errors import ServewiseError, nearest_names

WRONG_INPUT, INTERRUPTED = 2, 130


def exit_code_of(error: BaseException) -> int | None:
    """The exit code of an error that a user can mend; None for a defect of ours, which keeps its traceback."""
    if isinstance(error, ServewiseError):
        return error.exit_code
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    return WRONG_INPUT if isinstance(error, (click.ClickException, OSError, MemoryError)) else None


def line_of(error: BaseException) -> str:
    """The one line that is shown."""
    return " ".join(f"servewise: {_said(error)}".split())


def _said(error: BaseException) -> str:
    match error:
        case KeyboardInterrupt() | click.Abort():
            said = "interrupted"
        case click.NoSuchOption():
            said = _unknown_option(error)
        case click.UsageError():
            said = _with_help(f"{_command(error)}{_plain(error.format_message())}", error)
        case click.ClickException():
            said = error.format_message()
        case MemoryError():
            said = "out of memory; a smaller workload or fewer seeds"
        case OSError(filename=str() as name, strerror=str() as reason):
            said = f"{name}: {reason.lower()}"
        case _:
            said = str(error)
    return said


def _unknown_option(error: click.NoSuchOption) -> str:
    known = [name for each in (error.ctx.command.params if error.ctx else ()) for name in each.opts]
    near = nearest_names(error.option_name, [name for name in known if name.startswith("--")])
    hint = f"did you mean {', '.join(near)}?" if near else "see --help"
    return f"{_command(error)}unknown option {error.option_name}; {hint}"


def _with_help(said: str, error: click.UsageError) -> str:
    if ";" in said or error.ctx is None:
        return said
    return f"{said}; see {error.ctx.command_path} --help"


def _command(error: click.UsageError) -> str:
    name = error.ctx.info_name if error.ctx else None
    return f"{name}: " if name and name != "servewise" else ""


def _plain(message: str) -> str:
    """click's sentence as the rest of a line: no capital, no full stop."""
    text = message.strip().rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
