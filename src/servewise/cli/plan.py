"""``servewise plan``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.emitting import emit_launches, emit_options
from servewise.cli.names import ACCELERATOR, ENGINE, MODEL, POLICY, WORKLOAD
from servewise.cli.options import EXPERT_LOAD_HELP, PRECISION_HELP, estimator_option, executor_options
from servewise.cli.progress import progress_bar
from servewise.cli.quantities import DURATION, NUMBER, PER_S, TEXT, WHOLE, Several
from servewise.cli.showing import Show, answering


class Top(click.ParamType[int | None]):
    """A whole number, or all."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """The number; None: all."""
        return None if value in (None, "all") else WHOLE.convert(value, param, ctx)


class Heard:
    """What stands before the progress bar: how many candidates are pruned, simulated and left."""

    def __init__(self) -> None:
        self._last = ""

    def hear(self, tally: object) -> None:
        """``tally`` is the latest."""
        self._last = f": {tally}"

    def __str__(self) -> str:
        return f"weighing candidates{self._last}"


TOP = Top()


@click.command("plan")
@click.argument("model", type=MODEL)
@click.option(
    "--accelerators", type=Several(ACCELERATOR), required=True, metavar="A,...", help="Catalogue names, TOML files."
)
@click.option(
    "--workload", type=WORKLOAD, required=True, metavar="W", help="Built-in name (azure-conv), workload file or trace."
)
@click.option("--requests", type=WHOLE, metavar="N", help="Cut or repeat the workload to N requests.")
@click.option("--slo", required=True, metavar="TEXT", help='E.g. "ttft_p95<=1s, tpot_p95<=50ms".')
@click.option("--rate", type=PER_S, metavar="R", help="Requests/s to carry; default: the cheapest token.")
@click.option("--max-accelerators", type=WHOLE, metavar="N", help="Accelerators that there are, all replicas together.")
@click.option("--top", type=TOP, default="20", show_default=True, metavar="N|all", help="How many of the best to rank.")
@click.option("--prune/--no-prune", default=True, help="Spare those that cannot be among them, by physical bounds.")
@click.option("--counts", type=Several(WHOLE), default="1,2,4,8", show_default=True, help="Accelerators of a replica.")
@click.option("--pp", type=Several(WHOLE), default="1", show_default=True, help="Pipeline stages; the rest is TP.")
@click.option("--ep/--no-ep", multiple=True, help="Spread experts over a replica's ranks; name both to weigh both.")
@click.option("--expert-load", metavar="L", help=EXPERT_LOAD_HELP)
@click.option("--redundant-experts", type=WHOLE, metavar="N", help="Copies of experts, all placed by EPLB; or 0.")
@click.option("--weights", type=Several(TEXT), metavar="P,...", help=f"{PRECISION_HELP}. Default: the model's.")
@click.option("--kv", type=Several(TEXT), metavar="P,...", help="Precisions of the KV cache.")
@click.option("--engine", type=Several(ENGINE), default="vllm", show_default=True, metavar="E,...")
@click.option(
    "--policy",
    type=Several(POLICY),
    default="continuous",
    show_default=True,
    metavar="P,...",
    help="static, dynamic, continuous, or engines' own schedulers: vllm, sglang, trtllm, llamacpp.",
)
@click.option("--slots", type=Several(WHOLE), metavar="N,...", help="Sequences at once; default: the engine's.")
@click.option("--max-batched-tokens", type=Several(WHOLE), metavar="N,...", help="New tokens a step; or the engine's.")
@click.option("--window", type=DURATION, default="50ms", show_default=True, help="How long dynamic batching waits.")
@click.option("--chunked/--no-chunked", multiple=True, help="Split long prompts over steps; name both to weigh both.")
@click.option("--prefix-cache/--no-prefix-cache", multiple=True, help="Reuse shared prefixes; name both to weigh both.")
@click.option("--memory-utilization", type=Several(NUMBER), metavar="F,...", help="Shares of memory to take.")
@click.option("--max-context", type=WHOLE, metavar="T", help="Longest context served.")
@click.option("--kv-heads", type=WHOLE, metavar="N", help="As if the model kept N key-value heads a layer.")
@click.option("--prices", metavar="FILE", help="Your prices, TOML: h100-sxm = 2.75 (dollars an accelerator-hour).")
@estimator_option
@click.option("--seed", type=WHOLE, default=0, show_default=True)
@executor_options
@click.option("--check", is_flag=True, help="Exit with 1 when nothing keeps the SLO.")
@emit_options
@answering
def command(
    show: Show,
    *,
    model: str,
    accelerators: tuple[str, ...],
    check: bool,
    emit_dir: str | None,
    ep: tuple[bool, ...],
    chunked: tuple[bool, ...],
    prefix_cache: tuple[bool, ...],
    **options: Any,
) -> int:
    """Which deployment of MODEL keeps the SLO at the least cost, and why do the others lose?"""
    from servewise.ask.plan import plan

    heard = Heard()
    options |= {"ep": ep or False, "chunked": chunked or True, "prefix_cache": prefix_cache or False}
    with progress_bar(heard) as progress:
        answer = plan(model, accelerators, progress=progress, tell=heard.hear, **options)
    show(answer)
    emit_launches(answer, options["emit"], emit_dir)
    return 1 if check and answer.result["recommendation"] is None else 0
