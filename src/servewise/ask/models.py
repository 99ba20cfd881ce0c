"""Which models are on this machine; fetching one; writing one in another format for other servers."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from servewise.answer import Answer
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.engine.checkpoints.library import SMOLLM2, LocalModel, Places, default_places, local_models
from servewise.errors import InputError
from servewise.version import __version__

FORMATS = {"safetensors": ("bf16", "f16", "f32"), "gguf": ("bf16", "f16", "f32", "q8_0", "q4_0")}
UNROUNDED = {"f32": 0, "f64": 0, "bf16": 1, "f16": 1}
Progress = Callable[[int, int], None]


def models(*, places: Places | None = None) -> Answer:
    """The local models: name, where each lies, how it is stored, and why the engine refuses it where it does.

    ``places``: the models folder and the Hugging Face cache; None: those in the user's home.
    """
    places = places or default_places()
    rows = [_row(each) for each in local_models(places)]
    refused = [row for row in rows if row["refused"]]
    return Answer(
        command="models",
        conditions=_conditions("as stored"),
        result={"models": rows, "models_dir": str(places.models), "hub_cache": str(places.hub)},
        caveats=(
            *(Caveat("model-refused", f"{row['name']}: {row['refused']}", "see the message") for row in refused),
            *(() if rows else (Caveat("no-models", "no model is here", f"servewise models fetch {SMOLLM2}"),)),
        ),
    )


def _row(model: LocalModel) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": model.name,
        "format": "gguf" if model.path.suffix == ".gguf" else "safetensors",
        "family": None,
        "stored": None,
        "parameters": None,
        "context_tokens": None,
        "size_bytes": _size(model.path),
        "origin": model.origin,
        "path": str(model.path),
        "refused": None,
    }
    if not find_spec("torch"):
        return row | {"refused": "reading it needs servewise[engine]"}
    from servewise.engine.checkpoints.expected import parameters
    from servewise.engine.checkpoints.opening import open_checkpoint

    try:
        checkpoint = open_checkpoint(model.path)
    except InputError as error:
        return row | {"refused": str(error)}
    config = checkpoint.config
    return row | {
        "family": config.family,
        "stored": checkpoint.stored,
        "parameters": parameters(config),
        "context_tokens": config.max_context_tokens,
    }


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else (path,)
    return sum(each.stat().st_size for each in files if each.is_file())


def fetch_model(name: str, *, places: Places | None = None) -> Answer:
    """Fetch ``name`` into the models folder: ``smollm2-135m-instruct``, a hub id, or one GGUF file of a hub id."""
    _need_engine()
    from servewise.engine.checkpoints.fetching import fetch

    found = fetch(name, places or default_places())
    return Answer(
        command="models-fetch",
        conditions=_conditions("as stored", found.model.name),
        result={"name": found.model.name, "path": str(found.model.path), "fetched": found.fetched}
        | {"size_bytes": _size(found.model.path)},
    )


def write_model(
    model: str,
    output: str | Path,
    *,
    format: str = "safetensors",  # noqa: A002 (the option's name)
    dtype: str = "bf16",
    places: Places | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Write the local ``model`` at ``output``: a folder (``safetensors``) or a file (``gguf``), weights in ``dtype``.

    ``dtype``: bf16, f16, f32, and for gguf also q8_0 and q4_0. Nothing is overwritten.
    """
    if dtype not in FORMATS.get(format, ()):
        allowed = "; ".join(f"{name}: {', '.join(dtypes)}" for name, dtypes in FORMATS.items())
        raise InputError(f"no format {format!r} with dtype {dtype!r}", where="models write", hint=allowed)
    _need_engine()
    from servewise.engine.checkpoints.expected import parameters
    from servewise.engine.checkpoints.library import find_checkpoint
    from servewise.engine.checkpoints.opening import open_checkpoint
    from servewise.engine.checkpoints.writing_gguf import write_gguf
    from servewise.engine.checkpoints.writing_safetensors import write_safetensors

    source = open_checkpoint(find_checkpoint(model, places))
    if format == "gguf":
        write_gguf(source, Path(output), dtype, progress=progress)
    else:
        write_safetensors(source, Path(output), dtype, progress=progress)
    return Answer(
        command="models-write",
        conditions=_conditions(f"{source.stored} as {dtype}", source.config.name),
        result={
            "name": source.config.name,
            "path": str(output),
            "format": format,
            "dtype": dtype,
            "source": str(source.path),
            "source_stored": source.stored,
            "parameters": parameters(source.config),
            "size_bytes": _size(Path(output)),
        },
        caveats=_rounding(source.stored, dtype),
    )


def _rounding(stored: str, dtype: str) -> tuple[Caveat, ...]:
    """What the written weights lost against the source's."""
    if dtype in ("f32", stored.lower()):
        return ()
    if stored.lower() in UNROUNDED:
        said = f"the weights are rounded from {stored} to {dtype}"
    else:
        said = f"the source is {stored}: its dequantised weights are rounded again, to {dtype}"
    return (Caveat("rounded", said, "write f32 for the source's exact values"),)


def _conditions(precision: str, model: str | None = None) -> Conditions:
    return Conditions(
        hardware="files on this machine",
        load="none",
        lengths="none",
        precision=precision,
        model=model,
        version=__version__,
    )


def _need_engine() -> None:
    if not find_spec("torch"):
        raise InputError("needs PyTorch", where="models", hint="pip install 'servewise[engine]'")
