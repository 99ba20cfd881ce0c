"""``servewise probe kv``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.progress import progress_bar
from servewise.cli.quantities import TEXT, WHOLE, Several
from servewise.cli.showing import Show, answering


@click.command("kv")
@click.argument("model")
@click.option("--tokens", type=Several(WHOLE), default="20,40,80,160", show_default=True, metavar="N,...")
@click.option("--dtypes", type=Several(TEXT), default="float64,float32", show_default=True, metavar="D,...")
@click.option("--prompt", metavar="TEXT", help="Default: a sentence of its own.")
@click.option("--prompt-tokens", type=WHOLE, default=5, show_default=True, help="Its first tokens are taken.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--threads", type=WHOLE, metavar="N", help="Of CPU operations; default: PyTorch's choice.")
@answering
def command(show: Show, *, model: str, prompt: str | None, **options: Any) -> None:
    """What does a KV cache save on MODEL, a local checkpoint, and does it change anything?

    Positions processed, wall time, identical tokens and the largest logit difference, with and without the cache.
    """
    from servewise.ask.probe_kv import PROMPT, probe_kv

    with progress_bar("kv") as progress:
        answer = probe_kv(model, prompt=prompt or PROMPT, progress=progress, **options)
    show(answer)
