"""``servewise completion``."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_SERVEWISE_COMPLETE"


@click.command("completion", no_args_is_help=True)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """The script with which SHELL completes commands, options and names.

    \b
    ~/.bashrc:                  eval "$(servewise completion bash)"
    ~/.zshrc:                   eval "$(servewise completion zsh)"
    ~/.config/fish/config.fish: servewise completion fish | source
    """
    from click.shell_completion import get_completion_class

    from servewise.cli.main import servewise

    kind = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(servewise, {}, "servewise", VARIABLE).source())
