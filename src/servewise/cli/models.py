"""``servewise models``: what is here; ``models fetch``, ``models write``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from servewise.cli.progress import progress_bar
from servewise.cli.showing import Show, answering, show

if TYPE_CHECKING:
    from servewise.engine.checkpoints.library import Places

F = TypeVar("F", bound=Callable[..., Any])


def _places_options(function: F) -> F:
    """Where models are looked for; the environment's names are read here and nowhere else."""
    text = "Folder of models; default ~/.cache/servewise/models."
    models = click.option("--models-dir", envvar="SERVEWISE_MODELS", metavar="D", help=text)
    hub = click.option("--hub-cache", envvar="HF_HUB_CACHE", metavar="D", help="Hugging Face's cache of models.")
    return models(hub(function))


def _places(models_dir: str | None, hub_cache: str | None) -> Places:
    from servewise.engine.checkpoints.library import Places, default_places

    usual = default_places()
    models = Path(models_dir).expanduser() if models_dir else usual.models
    return Places(models, Path(hub_cache).expanduser() if hub_cache else usual.hub)


@click.group("models", invoke_without_command=True)
@_places_options
@answering
@click.pass_context
def command(ctx: click.Context, show: Show, *, models_dir: str | None, hub_cache: str | None) -> None:
    """The models on this machine: those of a models folder, of Python packages, and of Hugging Face's cache."""
    if ctx.invoked_subcommand is None:
        from servewise.ask.models import models

        show(models(places=_places(models_dir, hub_cache)))


@command.command("fetch")
@click.argument("name")
@_places_options
@answering
def fetch(show: Show, *, name: str, models_dir: str | None, hub_cache: str | None) -> None:
    """Fetch NAME into the models folder: smollm2-135m-instruct, a hub id, or one GGUF file of it (ORG/NAME/FILE)."""
    from servewise.ask.models import fetch_model

    show(fetch_model(name, places=_places(models_dir, hub_cache)))


@command.command("write")
@click.argument("model")
@click.option("--format", "format_", default="safetensors", show_default=True, metavar="safetensors|gguf")
@click.option("--dtype", default="bf16", show_default=True, metavar="bf16|f16|f32|q8_0|q4_0", help="q8_0, q4_0: gguf.")
@click.option("--output", "-o", required=True, metavar="PATH", help="The new folder or file; nothing is overwritten.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@_places_options
def write(
    *, model: str, format_: str, dtype: str, output: str, as_json: bool, models_dir: str | None, hub_cache: str | None
) -> None:
    """Write MODEL as a checkpoint that other servers load: safetensors (vLLM, transformers) or GGUF (llama.cpp)."""
    from servewise.ask.models import write_model

    places = _places(models_dir, hub_cache)
    with progress_bar("weights") as progress:
        answer = write_model(model, output, format=format_, dtype=dtype, places=places, progress=progress)
    show(answer, as_json=as_json)
