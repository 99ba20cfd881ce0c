"""``servewise probe policies``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.progress import progress_bar
from servewise.cli.quantities import DURATION, PER_S, TEXT, WHOLE, Several
from servewise.cli.showing import Show, answering


@click.command("policies")
@click.argument("model")
@click.option("--policies", type=Several(TEXT), default="static,dynamic,continuous", show_default=True, metavar="P,...")
@click.option("--rates", type=Several(PER_S), metavar="R,...", help="Requests/s; default: five up to 0.7 of capacity.")
@click.option("--requests", type=WHOLE, default=100, show_default=True, metavar="N", help="Of each run.")
@click.option("--slots", type=WHOLE, default=8, show_default=True, metavar="N", help="Sequences at once.")
@click.option("--window", type=DURATION, metavar="S", help="How long dynamic batching waits; default: 20 steps.")
@click.option("--max-batched-tokens", type=WHOLE, default=256, show_default=True, help="New tokens a step at most.")
@click.option("--prompt-median", type=WHOLE, default=24, show_default=True, metavar="T")
@click.option("--output-median", type=WHOLE, default=12, show_default=True, metavar="T")
@click.option("--longest-prompt", type=WHOLE, default=96, show_default=True, metavar="T")
@click.option("--longest-output", type=WHOLE, default=64, show_default=True, metavar="T")
@click.option("--dtype", default="bfloat16", show_default=True, help="What computes.")
@click.option("--layers", type=WHOLE, metavar="N", help="Only the model's first N layers.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--kernels", default="auto", show_default=True, help="auto, torch, or compiled (bfloat16 on x86-64).")
@click.option("--threads", type=WHOLE, metavar="N", help="Of CPU operations; default: PyTorch's choice.")
@click.option("--clock", default="wall", show_default=True, help="wall, or undisturbed (one thread): see --help.")
@click.option("--seed", type=WHOLE, default=0, show_default=True)
@click.option("--run-dir", metavar="D", help="Keeps every run; the same command goes on where it stopped.")
@click.option("--check", is_flag=True, help="Exit 1 where p50 or p95 is off by over 10% below saturation.")
@answering
def command(show: Show, *, model: str, check: bool, **options: Any) -> int:
    """Static, dynamic and continuous batching measured on MODEL, a local checkpoint, beside the simulator's prediction.

    The same arrivals through the real engine under each policy; the simulator is timed by the engine's own calibrated
    steps. The undisturbed clock stands still while other programs hold the core.
    """
    from servewise.ask.probe_policies import probe_policies

    with progress_bar("policies") as progress:
        answer = probe_policies(model, progress=progress, **options)
    show(answer)
    return int(check and not answer.result["all_within"])
