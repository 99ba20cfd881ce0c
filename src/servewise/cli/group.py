"""The group of commands: each module is imported when its command is called; each error is one line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from servewise.cli.commandline import LINE
from servewise.cli.failure import exit_code_of, line_of
from servewise.errors import nearest_names


class CommandsOnCall(click.Group):
    """A group that knows its commands by module and help line, and imports one when it is called.

    ``commands_by_module``: command name -> (module that holds a ``command``, help line). Every error ends as one line
    on stderr and CONTRACT's exit code, also click's own.
    """

    def __init__(self, *args: Any, commands_by_module: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.by_module = commands_by_module

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order in which they are written."""
        return list(self.by_module)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported now."""
        if cmd_name not in self.by_module:
            return None
        command = importlib.import_module(self.by_module[cmd_name][0]).command
        assert isinstance(command, click.Command), cmd_name
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the words, for reports that say how they were made."""
        ctx.meta[LINE] = list(args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command asked for, or an error that offers the nearest names."""
        if args and not args[0].startswith("-") and args[0] not in self.by_module:
            near = nearest_names(args[0], self.by_module)
            hint = f"did you mean {', '.join(near)}?" if near else f"one of {', '.join(self.by_module)}"
            raise click.UsageError(f"unknown command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, without importing anything; then the group's own options."""
        named = [
            CompletionItem(name, help=text)
            for name, (_, text) in self.by_module.items()
            if name.startswith(incomplete) and not incomplete.startswith("-")
        ]
        return named or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The help lines, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.by_module.items()])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, and end the process with CONTRACT's exit code."""
        try:
            code = super().main(*args, **{"prog_name": "servewise"} | extra | {"standalone_mode": False})
        except BaseException as error:
            known = exit_code_of(error)
            if known is None:
                raise
            click.echo(line_of(error), err=True)
            sys.exit(known)
        sys.exit(code if isinstance(code, int) else 0)
