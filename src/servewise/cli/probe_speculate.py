"""``servewise probe speculate``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.progress import progress_bar
from servewise.cli.quantities import NUMBER, WHOLE, Several
from servewise.cli.showing import Show, answering


@click.command("speculate")
@click.argument("model")
@click.option("--draft", required=True, metavar="D", help="ngram, ngram:MIN-MAX, self:BITS, exit:LAYERS, or a model.")
@click.option("--prompts", required=True, metavar="FILE", help="A prompt a line, or JSON lines of prompt or messages.")
@click.option("--max-k", type=WHOLE, default=8, show_default=True, metavar="N", help="Draft tokens at most.")
@click.option("--batch", type=Several(WHOLE), default="1,8", show_default=True, metavar="B,...")
@click.option("--max-tokens", type=WHOLE, default=64, show_default=True, metavar="N", help="Tokens of a reply at most.")
@click.option("--temperature", type=NUMBER, default=0.0, show_default=True, metavar="T", help="0: greedy.")
@click.option("--repeats", type=WHOLE, default=3, show_default=True, help="Of each timing, for its interval.")
@click.option("--speed-prompts", type=WHOLE, default=8, show_default=True, help="Prompts of a timed run, at least.")
@click.option("--acceptance-only", is_flag=True, help="Acceptance by position, and no timing.")
@click.option("--dtype", default="bfloat16", show_default=True, help="float64, float32 or bfloat16: what computes.")
@click.option("--device", default="cpu", show_default=True, metavar="D", help="cpu, cuda, cuda:1.")
@click.option("--threads", type=WHOLE, metavar="N", help="CPU threads; default: PyTorch's.")
@click.option("--seed", type=WHOLE, default=0, show_default=True)
@click.option("--resume", metavar="FILE", help="JSON lines as they come; what is there is not measured again.")
@answering
def command(show: Show, *, model: str, **options: Any) -> None:
    """Does a draft pay on your own prompts: acceptance by position, predicted and measured speed-up by K and batch."""
    from servewise.ask.probe_speculate import probe_speculate

    with progress_bar("speculate") as progress:
        answer = probe_speculate(model, progress=progress, **options)
    show(answer)
