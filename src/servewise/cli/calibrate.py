"""``servewise calibrate``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.options import deployment_options
from servewise.cli.quantities import DURATION, NUMBER, WHOLE
from servewise.cli.showing import show


@click.command("calibrate")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@deployment_options()
@click.option("--holdout", type=NUMBER, default=0.2, show_default=True, metavar="F", help="Share kept out of the fit.")
@click.option("--policy", default="continuous", show_default=True, metavar="static|dynamic|continuous")
@click.option("--slots", type=WHOLE, metavar="N", help="Sequences at once, of servers without step records.")
@click.option("--window", type=DURATION, default="50ms", show_default=True, help="How long dynamic batching waits.")
@click.option("--reserve/--no-reserve", help="The server takes the blocks of the whole answer at admission.")
@click.option("--chunked/--no-chunked", default=True, show_default=True, help="Prompts may be split over steps.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Of the resampling.")
@click.option("--output", "-o", required=True, metavar="FILE", help="The calibration, for --estimator FILE.toml.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(*, runs: tuple[str, ...], model: str, accelerator: str | None, as_json: bool, **options: Any) -> None:
    """What do RUNs of a server that runs MODEL tell of it? Coefficients with intervals, as a file for --estimator.

    RUN is a run directory or a folder of some, simulated or measured. Step records are fitted where all have them;
    else the requests' latencies, through the simulator, under the policy that the options describe.
    """
    from servewise.ask.calibrate import calibrate

    answer = calibrate(runs, model, accelerator, **options)
    show(answer, as_json=as_json)
