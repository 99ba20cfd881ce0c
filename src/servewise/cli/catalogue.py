"""``servewise catalogue``."""

from __future__ import annotations

import click

from servewise.cli.showing import Show, answering


@click.command("catalogue")
@click.argument("kinds", nargs=-1, metavar="[models|accelerators|workloads]...")
@click.option("--matching", default="", metavar="TEXT", help="Only names that contain TEXT.")
@answering
def command(show: Show, *, kinds: tuple[str, ...], matching: str) -> None:
    """What ships by name: models, accelerators and workloads."""
    from servewise.ask.catalogue import catalogue

    show(catalogue(*kinds, matching=matching))
