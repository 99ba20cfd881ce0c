"""``servewise experiment``: measurements that start servers of their own."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from servewise.cli.failure import INTERRUPTED
from servewise.cli.progress import progress_bar
from servewise.cli.quantities import DURATION, TEXT, WHOLE, Several
from servewise.cli.showing import Show, answering
from servewise.errors import InputError, RunFailed


@click.group("experiment")
def command() -> None:
    """Measurements that start servers of their own, and stop them again."""


@command.command("serve-small")
@click.option("--servers", type=Several(TEXT), default="llamacpp,own,vllm", show_default=True, metavar="S,...")
@click.option(
    "--parts", type=Several(TEXT), default="16-bit,quantised,prefix,batching", show_default=True, metavar="P,..."
)
@click.option("--streams", type=Several(WHOLE), default="1,8,32", show_default=True, metavar="N,...")
@click.option("--prefix-streams", type=Several(WHOLE), default="1,8", show_default=True, metavar="N,...")
@click.option("--requests", type=WHOLE, default=2, show_default=True, metavar="N", help="A stream and run.")
@click.option("--repeats", type=WHOLE, default=1, show_default=True, metavar="N", help="Of each run.")
@click.option(
    "--most", "most_s", type=DURATION, default="60s", show_default=True, help="A run sends nothing new after it."
)
@click.option("--threads", type=WHOLE, metavar="N", help="Of each server; default: all cores.")
@click.option("--model", default="smollm2-135m-instruct", show_default=True, help="A local checkpoint.")
@click.option("--llama-server", metavar="FILE", help="A llama-server program; default: one on PATH, else xllamacpp's.")
@click.option("--seed", type=WHOLE, default=0, show_default=True)
@click.option("--run-dir", default="serve-small", show_default=True, metavar="D", help="Keeps every run.")
@answering
def serve_small(show: Show, *, llama_server: str | None, **options: Any) -> int:
    """One small model on llama.cpp, on the reference engine and on vLLM, side by side.

    16-bit weights, then quantised ones, then prompts with a shared 512-token prefix with prefix caching off and on,
    then batching policies; 128 tokens in, 64 out. The servers are installed into environments of their own (vLLM takes
    3.5 GB) in servewise's cache folder. What the run folder holds already is not measured again. Needs
    servewise[engine,measure].
    """
    if any(find_spec(name) is None for name in ("torch", "httptools", "orjson")):
        hint = "pip install 'servewise[engine,measure]'"
        raise InputError("the engine or the load client is not installed", where="experiment", hint=hint)
    from servewise.ask.experiment_serve_small import experiment_serve_small
    from servewise.ask.serve_small.launching import Places

    program = llama_server or shutil.which("llama-server")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "servewise"
    places = Places(
        environments=cache / "environments",
        models=cache / "written",
        llama_server=None if program is None else Path(program),
    )
    with progress_bar("runs") as progress:
        found = experiment_serve_small(
            places=places, progress=progress, tell=lambda line: click.echo(line, err=True), **options
        )
    show(found.answer)
    return {"whole": 0, "interrupted": INTERRUPTED, "server": RunFailed.exit_code}[found.ended]
