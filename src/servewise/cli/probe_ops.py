"""``servewise probe ops``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.progress import progress_bar
from servewise.cli.quantities import TEXT, WHOLE, Several
from servewise.cli.showing import Show, answering, checked_target


@click.command("ops")
@click.argument("model", required=False)
@click.option("--dtypes", type=Several(TEXT), default="float32,bfloat16", show_default=True, metavar="D,...")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--threads", type=WHOLE, metavar="N", help="Of CPU operations; default: PyTorch's choice.")
@click.option("--passes", type=WHOLE, default=3, show_default=True, help="Visits of each operation.")
@click.option("--batches", type=Several(WHOLE), default="1,2,4,8,16,32", show_default=True, help="Of timed steps.")
@click.option("--contexts", type=Several(WHOLE), default="64,256,1024", show_default=True, help="Of timed steps.")
@click.option("--prompts", type=Several(WHOLE), default="16,64,256,1024", show_default=True, help="Of timed steps.")
@click.option("--accelerator-out", metavar="FILE", help="This machine as a TOML file, for --accelerator FILE.")
@click.option("--steps-out", metavar="FILE", help="MODEL's step times as a CSV table, for --estimator FILE.")
@answering
def command(show: Show, *, model: str | None, **options: Any) -> None:
    """What does this machine do? Bandwidth and FLOP/s; with MODEL, the times of its operations and steps.

    With both files every prediction can be made for this machine: size, steptime, simulate and plan take
    --accelerator FILE.toml, and the first three --estimator FILE.csv for MODEL.
    """
    from servewise.ask.probe_ops import probe_ops

    for name in ("accelerator_out", "steps_out"):
        if options[name]:
            checked_target(options[name])
    with progress_bar("ops") as progress:
        answer = probe_ops(model, progress=progress, **options)
    show(answer)
