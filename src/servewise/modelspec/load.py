"""MODEL as a user gives it: a catalogue name, a folder or file with a config.json, a GGUF file, or a hub id."""

from __future__ import annotations

import re
from pathlib import Path

from servewise.errors import InputError, UnknownName, nearest_names
from servewise.modelspec.catalogue import Entry, by_hub_id, by_name, entries
from servewise.modelspec.checkpoint import MOST_CONFIG_BYTES, opened, read_folder, read_text
from servewise.modelspec.gguf import MAGIC
from servewise.modelspec.gguf_model import read_gguf
from servewise.modelspec.hf_config import parse_config, parse_text
from servewise.modelspec.spec import ModelSpec

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def load_model(name_or_path: str, *, hub_cache: Path | None = None) -> ModelSpec:
    """The model of that catalogue name, config.json (or folder with one), GGUF file or hub id.

    A name without a slash is looked up in the catalogue first (write ``./NAME`` for a folder of that name); anything
    else first on disk. A hub id is served from the catalogue, else from ``hub_cache`` (None: the Hugging Face cache
    in the home folder); nothing is fetched.

    Raises UnknownName with the nearest names, InputError for a config that is malformed, lacks fields (named) or
    has an architecture that is not known.
    """
    text = name_or_path.strip()
    if not text or "\0" in text or len(text) > 4096:
        raise InputError("give a catalogue name, a folder with a config.json, a GGUF file or a hub id", where="model")
    entry = by_name(text)
    if entry is not None:
        return _from_entry(entry)
    path = _existing(Path(text))
    if path is not None:
        return _from_path(path)
    if HUB_ID.fullmatch(text):
        return _from_hub(text, hub_cache or Path.home() / ".cache" / "huggingface" / "hub")
    raise UnknownName("model", text[:200], model_names(), hint="a catalogue name, a path or a hub id")


def model_names() -> tuple[str, ...]:
    """The names of the models that ship with the package."""
    return tuple(entries())


def _from_entry(entry: Entry) -> ModelSpec:
    return parse_config(entry.config, name=entry.name, source=entry.source, where=f"model {entry.name}")


def _existing(path: Path) -> Path | None:
    try:
        return path if path.exists() else None
    except OSError:
        return None


def _from_path(path: Path) -> ModelSpec:
    if path.is_dir():
        return read_folder(path, name=path.resolve().name)
    if not path.is_file():
        raise InputError("neither a file nor a folder", where=str(path))
    with opened(path) as file:
        start = file.read(len(MAGIC))
    if start == MAGIC:
        return read_gguf(path)
    if path.suffix.lower() == ".gguf":
        raise InputError("not a GGUF file (it does not start with GGUF)", where=str(path))
    name = path.stem if path.name != "config.json" else path.resolve().parent.name
    return parse_text(read_text(path, MOST_CONFIG_BYTES), name=name, source=str(path), where=str(path))


def _from_hub(hub_id: str, cache: Path) -> ModelSpec:
    entry = by_hub_id(hub_id)
    if entry is not None:
        return _from_entry(entry)
    base = cache / ("models--" + hub_id.replace("/", "--"))
    snapshots = [path for path in sorted(base.glob("snapshots/*")) if (path / "config.json").is_file()]
    if snapshots:
        return read_folder(_current(base, snapshots), name=hub_id)
    near = nearest_names(hub_id, [hub for each in entries().values() for hub in each.hub])
    get = f"fetch it with `hf download {hub_id} config.json`, or give the path of its config.json"
    offer = f"{get}; in the catalogue: {', '.join(near)}" if near else get
    raise UnknownName(
        "hub model", hub_id[:200], (), where="neither in the catalogue nor in the local cache", hint=offer
    )


def _current(base: Path, snapshots: list[Path]) -> Path:
    reference = base / "refs" / "main"
    current = read_text(reference, 4096).strip() if reference.is_file() else ""
    return next((path for path in snapshots if path.name == current), snapshots[-1])
