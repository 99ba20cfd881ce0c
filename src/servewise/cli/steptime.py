"""``servewise steptime``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.options import deployment_options, estimator_option
from servewise.cli.quantities import WHOLE, Several
from servewise.cli.showing import Show, answering


@click.command("steptime")
@deployment_options()
@click.option("--phase", default="decode", show_default=True, metavar="decode|prefill", help="Which kind of step.")
@click.option("--batch", type=Several(WHOLE), default="1,2,4,8,16,32,64,128,256", show_default=True, metavar="N,...")
@click.option("--context", type=WHOLE, default=2048, show_default=True, metavar="T", help="Tokens of a sequence.")
@estimator_option
@answering
def command(show: Show, *, model: str, accelerator: str | None, **options: Any) -> None:
    """How long does a step of MODEL take, of what is it made, and from which batch on is it compute-bound?"""
    from servewise.ask.steptime import steptime

    show(steptime(model, accelerator, **options))
