"""``servewise simulate``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.commandline import typed_line
from servewise.cli.failure import WRONG_INPUT
from servewise.cli.names import POLICIES, WORKLOAD
from servewise.cli.options import (
    deployment_options,
    estimator_option,
    executor_options,
    seed_options,
    speculation_options,
)
from servewise.cli.progress import progress_bar
from servewise.cli.quantities import DURATION, PER_S, WHOLE, Several
from servewise.cli.showing import Show, answering


@click.command("simulate")
@deployment_options()
@click.option(
    "--workload", type=WORKLOAD, required=True, metavar="W", help="Built-in name (azure-conv), workload file or trace."
)
@click.option("--requests", type=WHOLE, metavar="N", help="Cut or repeat the workload to N requests.")
@click.option(
    "--policy",
    type=POLICIES,
    default="continuous",
    show_default=True,
    metavar="P,...",
    help="static, dynamic, continuous, or an engine's own scheduler: vllm, sglang, trtllm, llamacpp.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An engine's setting: max_num_seqs=128.")
@click.option("--rate", type=Several(PER_S), metavar="R,...", help="Requests/s; default: the workload's own.")
@click.option("--slots", type=WHOLE, metavar="N", help="Sequences at once; default: the engine's limit, 8 for others.")
@click.option("--window", type=DURATION, default="50ms", show_default=True, help="How long dynamic batching waits.")
@click.option("--reserve/--no-reserve", help="Take the blocks of the whole answer at admission.")
@click.option("--chunked/--no-chunked", default=True, show_default=True, help="Prompts may be split over steps.")
@click.option("--prefix-cache/--no-prefix-cache", help="Reuse the blocks of shared prefixes.")
@speculation_options
@click.option("--kv-blocks", type=WHOLE, metavar="N", help="The KV pool as the engine's log tells it.")
@click.option("--unit-step", is_flag=True, help="Every step costs 1 s, so that latencies read in steps.")
@click.option("--slo", metavar="TEXT", help='E.g. "ttft_p95<=1s, tpot_p95<=50ms"; goodput counts what meets it.')
@seed_options
@estimator_option
@click.option("--run-dir", metavar="D", help="Keep the records of each row's first replicate in this folder.")
@click.option("--moment", metavar="FROM:TO", help="Keep what every request did then, e.g. 60s:70s, as a Chrome trace.")
@click.option("--moment-file", metavar="FILE", help="Where; default servewise-moment.json. Open in ui.perfetto.dev.")
@executor_options
@answering
def command(
    show: Show, *, model: str, accelerator: str | None, policy: str, settings: tuple[str, ...], **options: Any
) -> int:
    """How long do requests to MODEL wait and run under a policy, and at which rate does it saturate?"""
    from servewise.ask.run import NOT_KEPT
    from servewise.ask.settings import pairs_of
    from servewise.ask.simulate import simulate

    names = [name.strip() for name in policy.split(",")]
    with progress_bar("simulating") as progress:
        answer = simulate(
            model,
            accelerator,
            policy=names,
            settings=pairs_of(settings),
            command=typed_line(),
            progress=progress,
            **options,
        )
    show(answer)
    return WRONG_INPUT if any(each.code == NOT_KEPT for each in answer.caveats) else 0
