"""``servewise fleet``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.commandline import typed_line
from servewise.cli.failure import WRONG_INPUT
from servewise.cli.names import POLICY, WORKLOAD
from servewise.cli.options import deployment_options, estimator_option, executor_options, speculation_options
from servewise.cli.progress import progress_bar
from servewise.cli.quantities import NUMBER, PER_S, WHOLE, Several
from servewise.cli.showing import Show, answering

ROUTER_HELP = "round-robin, least-loaded, power-of-two, random, prefix-aware, session-sticky, prefix-hash."
POLICY_HELP = "Each replica's: static, dynamic, continuous, or an engine's own: vllm, sglang, trtllm, llamacpp."


@click.command("fleet")
@deployment_options()
@click.option(
    "--workload", type=WORKLOAD, required=True, metavar="W", help="Built-in name (azure-conv), workload file or trace."
)
@click.option("--requests", type=WHOLE, metavar="N", help="Cut or repeat the workload to N requests.")
@click.option("--replicas", type=WHOLE, metavar="N", help="Replicas of the deployment; default 2, or a split's.")
@click.option("--router", default="round-robin", show_default=True, metavar="R,...", help=ROUTER_HELP)
@click.option(
    "--router-set",
    multiple=True,
    metavar="NAME=VALUE",
    help="cache_threshold, balance_abs_threshold, balance_rel_threshold (prefix-aware), waiting_weight (least-loaded), "
    "prefix_blocks (prefix-hash).",
)
@click.option("--rate", type=Several(PER_S), metavar="R,...", help="The fleet's requests/s; default: the workload's.")
@click.option("--also", multiple=True, metavar="N:ACC[@W]", help="N replicas on ACC of weight W: 2:a100-80gb@0.5.")
@click.option("--fail", multiple=True, metavar="rN@T[:T]", help="Replica N dies at a time and returns: r0@60s:120s.")
@click.option("--on-failure", default="retry", show_default=True, metavar="RULE", help="retry, continue or fail.")
@click.option(
    "--autoscale",
    metavar="TEXT",
    help="load=0.7,min=1,max=8,every=15s,start=2min,settle=5min, or wait=2s,...",
)
@click.option("--lockstep", is_flag=True, help="Data-parallel ranks: every step lasts as long as the slowest one's.")
@click.option("--disaggregate", metavar="xPyD,...", help="Prefill and decode apart: 2P2D,1P3D, or all; beside mixed.")
@click.option("--link", metavar="L", help="KV's way between them: a network, an accelerator, 50GB/s:10us.")
@click.option("--overlap", is_flag=True, help="KV moves layer by layer while the prompt is computed.")
@click.option("--decode-router", default="least-loaded", show_default=True, metavar="R", help="Of decode servers.")
@click.option("--policy", type=POLICY, default="continuous", show_default=True, metavar="P", help=POLICY_HELP)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An engine's setting: max_num_seqs=128.")
@click.option("--slots", type=WHOLE, metavar="N", help="Sequences at once on each; default: the engine's limit.")
@click.option("--reserve/--no-reserve", help="Take the blocks of the whole answer at admission.")
@click.option("--chunked/--no-chunked", default=True, show_default=True, help="Prompts may be split over steps.")
@click.option("--prefix-cache/--no-prefix-cache", help="Reuse the blocks of shared prefixes.")
@speculation_options
@click.option("--slo", metavar="TEXT", help='E.g. "ttft_p95<=1s, tpot_p95<=50ms"; goodput counts what meets it.')
@click.option("--price", type=NUMBER, metavar="USD", help="Dollars per accelerator-hour, over the shipped price.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="The first seed.")
@click.option("--seeds", type=WHOLE, default=3, show_default=True, help="How many; a trace is the same for all.")
@estimator_option
@click.option("--run-dir", metavar="D", help="Keep the records of each row's first replicate in this folder.")
@executor_options
@answering
def command(
    show: Show,
    *,
    model: str,
    accelerator: str | None,
    settings: tuple[str, ...],
    router: str,
    router_set: tuple[str, ...],
    disaggregate: str | None,
    **options: Any,
) -> int:
    """How do several replicas of MODEL behind a router serve the load, and what if some fail or prefill is apart?"""
    from servewise.ask.fleet import fleet
    from servewise.ask.run import NOT_KEPT
    from servewise.ask.settings import pairs_of

    with progress_bar("simulating") as progress:
        answer = fleet(
            model,
            accelerator,
            router=[name.strip() for name in router.split(",")],
            router_settings=pairs_of(router_set),
            settings=pairs_of(settings),
            disaggregate=disaggregate or (),
            command=typed_line(),
            progress=progress,
            **options,
        )
    show(answer)
    return WRONG_INPUT if any(each.code == NOT_KEPT for each in answer.caveats) else 0
