"""``servewise compare``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.quantities import NUMBER
from servewise.cli.showing import Show, answering


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--fail-if", metavar="TEXT", help='Exit 1 where B is beyond it: "ttft_p95>+10%, output_tokens_per_s<-5%".'
)
@click.option("--claim", metavar="2.0x", help="A speed-up of B over A: reproduced, refuted or undecided?")
@click.option("--metric", default="output_tokens_per_s", show_default=True, help="What the claim is about.")
@click.option("--tolerance", type=NUMBER, default=0.05, show_default=True, help="How far below a claim still keeps it.")
@click.option("--slo", metavar="TEXT", help='E.g. "ttft_p95<=1s, tpot_p95<=50ms": compares goodput too.')
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the resampling.")
@answering
def command(show: Show, *, a: str, b: str, **options: Any) -> int:
    """Is run B better than run A, by how much, and how sure is that?

    A and B are run directories (measured or simulated), folders of runs, which are compared load by load, or results of
    other clients: vLLM bench serve, GuideLLM, AIPerf, llama-benchy.
    """
    from servewise.ask.compare import compare, failing

    answer = compare(a, b, **options)
    show(answer)
    broken = failing(answer)
    for gate in broken:
        click.echo(f"servewise: the gate does not hold: {gate}", err=True)
    return 1 if broken else 0
