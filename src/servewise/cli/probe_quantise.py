"""``servewise probe quantise``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.progress import progress_bar
from servewise.cli.quantities import NUMBER, TEXT, WHOLE, Several
from servewise.cli.showing import Show, answering

GRIDS = "symmetric,asymmetric"
TARGETS = "weights,kv,activations"


@click.command("quantise")
@click.argument("model")
@click.option("--eval", "evaluation", metavar="FILE", help="Text to judge by; default: the built-in one.")
@click.option("--calibration", metavar="FILE", help="Text for gptq's Hessians, another one; default: the built-in one.")
@click.option("--task", metavar="FILE", help='Exact match too: JSON lines of {"prompt", "answer"}.')
@click.option("--bits", type=Several(WHOLE), default="8,6,4,3,2", show_default=True, metavar="B,...")
@click.option("--groups", type=Several(TEXT), default="channel,128,64,32", show_default=True, metavar="G,...")
@click.option("--grid", "grids", type=Several(TEXT), default=GRIDS, show_default=True, metavar="...")
@click.option("--method", "methods", type=Several(TEXT), default="rtn,gptq", show_default=True, metavar="...")
@click.option("--target", "targets", type=Several(TEXT), default=TARGETS, show_default=True, metavar="...")
@click.option(
    "--keys", type=Several(TEXT), default="channel,token", show_default=True, help="Keys share steps by this."
)
@click.option("--embeddings/--no-embeddings", help="Embedding and output tables too, not only the layers' matrices.")
@click.option("--threshold", type=NUMBER, default=0.01, show_default=True, metavar="KL", help="Most KL allowed [nats].")
@click.option("--dtype", default="float32", show_default=True, help="float64, float32 or bfloat16: what computes.")
@click.option("--sequences", type=WHOLE, default=16, show_default=True, help="Sequences of the text, at most.")
@click.option("--length", type=WHOLE, default=256, show_default=True, metavar="T", help="Tokens a sequence.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Of the bootstrap.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--threads", type=WHOLE, metavar="N", help="Of CPU operations; default: PyTorch's choice.")
@click.option("--resume", metavar="FILE", help="JSON lines as they come; what is there is not measured again.")
@answering
def command(show: Show, *, model: str, **options: Any) -> None:
    """What fewer bits cost: KL and top-1 agreement with the model as it is, perplexity, by bits, groups and method.

    Weights, KV cache and activations are judged separately; the cheapest setting under the threshold is named.
    """
    from servewise.ask.probe_quantise import probe_quantise

    with progress_bar("quantise") as progress:
        answer = probe_quantise(model, progress=progress, **options)
    show(answer)
