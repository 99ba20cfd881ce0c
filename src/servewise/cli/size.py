"""``servewise size``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.options import deployment_options
from servewise.cli.quantities import WHOLE
from servewise.cli.showing import Show, answering


@click.command("size")
@deployment_options()
@click.option("--context", type=WHOLE, default=2048, show_default=True, metavar="T", help="Tokens of a sequence.")
@click.option("--log", metavar="FILE", help="An engine's start-up log, to be reconciled with the prediction.")
@click.option("--check", is_flag=True, help="Exit with 1 when not even one sequence fits.")
@answering
def command(show: Show, *, model: str, accelerator: str | None, check: bool, **options: Any) -> int:
    """Does MODEL fit, and how many tokens and sequences does it leave room for?

    Bytes are of one accelerator; tokens and sequences of one replica.
    """
    from servewise.ask.size import size

    answer = size(model, accelerator, **options)
    show(answer)
    return 1 if check and not answer.result["fits"] else 0
