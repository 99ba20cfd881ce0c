"""``servewise loop``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import click

from servewise.cli.commandline import typed_line
from servewise.cli.options import ENGINES, accelerator_option
from servewise.cli.quantities import BYTES_PER_S, FLOPS_PER_S, MEMORY, WHOLE, Several
from servewise.cli.showing import Show, answering
from servewise.errors import InputError

ENDED = {"whole": 0, "interrupted": 130, "server": 3, "disk": 3}
BENCH = ("model", "hardware", "precision", "input_tokens", "output_tokens", "api", "api_key", "keep_alive", "seed")


@click.command("loop")
@click.argument("url")
@click.option("--model", required=True, metavar="NAME", help="As the server calls it.")
@click.option("--spec", required=True, metavar="MODEL", help="The model: catalogue name, folder, file or config.")
@accelerator_option
@click.option("--hardware", required=True, metavar="TEXT", help="On what the server runs: every figure carries it.")
@click.option("--precision", required=True, metavar="P", help="Of weights and KV cache, in words.")
@click.option("--slo", required=True, metavar="TEXT", help='E.g. "ttft_p95<=1s, tpot_p95<=50ms".')
@click.option("--run-dir", required=True, metavar="D", help="Keeps the runs, the calibration and the comparison.")
@click.option("--streams", type=Several(WHOLE), default="1,8", show_default=True, help="Closed loops to calibrate on.")
@click.option("--requests", type=WHOLE, default=12, show_default=True, metavar="N", help="A stream of these loops.")
@click.option("--point-requests", type=WHOLE, default=150, show_default=True, metavar="N", help="At the plan's rate.")
@click.option("--input-tokens", default="64-192", show_default=True, metavar="D", help="512, 64-192, lognormal:608,1.2")
@click.option("--output-tokens", default="32-96", show_default=True, metavar="D")
@click.option("--slots", type=WHOLE, metavar="N", help="Sequences that the server runs at once (--max-num-seqs).")
@click.option("--max-batched-tokens", type=WHOLE, metavar="N", help="New tokens a step at most.")
@click.option("--prefix-cache/--no-prefix-cache", help="Whether the server keeps prefixes.")
@click.option("--weights", metavar="P", help="Precision of the weights, for the arithmetic; default: the model's.")
@click.option("--kv", metavar="P", help="Precision of the KV cache; default: 16 bits.")
@click.option("--activations", metavar="P", help="Precision computed in.")
@click.option("--engine", default="vllm", show_default=True, metavar="|".join(ENGINES), help="Whose habits hold.")
@click.option("--peak-flops", type=FLOPS_PER_S, metavar="X", help="Your own dense peak [FLOP/s].")
@click.option("--bandwidth", type=BYTES_PER_S, metavar="X", help="Your own memory bandwidth.")
@click.option("--memory", type=MEMORY, metavar="X", help="Your own memory size.")
@click.option("--api", default="chat", show_default=True, metavar="chat|completions")
@click.option("--api-key", envvar="SERVEWISE_API_KEY", metavar="KEY", help="Or in SERVEWISE_API_KEY; never kept.")
@click.option("--keep-alive/--no-keep-alive", default=True, show_default=True, help="Use connections again.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Of lengths, arrivals and texts.")
@answering
def command(show: Show, *, url: str, spec: str, accelerator: str | None, **options: Any) -> int:
    """Measure the server at URL, calibrate on it, find the highest rate in the SLO, measure that, compare.

    Needs servewise[measure]. The server's batching is described by --slots and --max-batched-tokens.
    """
    if any(find_spec(name) is None for name in ("httptools", "orjson")):
        raise InputError("the load client is not installed", where="loop", hint="pip install 'servewise[measure]'")
    from servewise.ask.bench_options import BenchOptions
    from servewise.ask.loop import loop

    measured = BenchOptions(**{name: options.pop(name) for name in BENCH})
    found = loop(url, spec, accelerator, measured, command=typed_line(), tell=_tell, **options)
    show(found.answer)
    return ENDED[found.ended]


def _tell(line: str) -> None:
    click.echo(f"servewise: {line}", err=True)
