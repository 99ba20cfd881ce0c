"""``servewise speculate``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.names import MODEL
from servewise.cli.options import deployment_options, estimator_option
from servewise.cli.quantities import NUMBER, WHOLE, Several
from servewise.cli.showing import Show, answering


@click.command("speculate")
@deployment_options(model_required=False)
@click.option("--acceptance", type=NUMBER, required=True, metavar="A", help="Share of draft tokens accepted, 0 to 1.")
@click.option("--draft-cost", type=NUMBER, metavar="C", help="A draft step over a target step; instead of models.")
@click.option("--draft", type=MODEL, metavar="MODEL", help="The draft model, or eagle, eagle3, mtp.")
@click.option("--batch", type=Several(WHOLE), default="1,4,16,64", show_default=True, metavar="B,...")
@click.option("--context", type=WHOLE, default=2048, show_default=True, metavar="T", help="Tokens of a sequence.")
@click.option("--max-k", type=WHOLE, default=16, show_default=True, metavar="N", help="Draft tokens at most.")
@estimator_option
@answering
def command(show: Show, *, model: str | None, accelerator: str | None, **options: Any) -> None:
    """Does speculative decoding pay, and with how many draft tokens?

    Either --acceptance and --draft-cost alone, or MODEL with --draft and --accelerator.
    """
    from servewise.ask.speculate import speculate

    show(speculate(model, accelerator, **options))
