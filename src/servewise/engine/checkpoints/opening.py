"""A folder or file as a checkpoint: which reader suits it, and a clear refusal where none does."""

from __future__ import annotations

from pathlib import Path

from servewise.engine.checkpoints.confined import confined
from servewise.engine.checkpoints.gguf_file import GgufFile
from servewise.engine.checkpoints.library import SMOLLM2, SMOLLM2_PACKAGE
from servewise.engine.checkpoints.safetensors_folder import PICKLES, SafetensorsFolder, pickle_refused
from servewise.errors import InputError
from servewise.modelspec.gguf import MAGIC


def open_checkpoint(path: Path) -> GgufFile | SafetensorsFolder:
    """The checkpoint at ``path``: a folder with safetensors or with one GGUF file, or a GGUF file."""
    if path.is_dir():
        return _open_folder(path)
    if any(path.match(pattern) for pattern in PICKLES):
        raise pickle_refused(path)
    if path.suffix in (".safetensors", ".json"):
        raise InputError("is one file of a checkpoint", where=str(path), hint=f"give its folder, {path.parent}")
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from None
    if start != MAGIC:
        raise InputError("is no GGUF file", where=str(path), hint="give a folder with safetensors, or a GGUF file")
    return GgufFile(path, SMOLLM2 if SMOLLM2_PACKAGE in path.parts else None)


def _open_folder(folder: Path) -> GgufFile | SafetensorsFolder:
    files = sorted(folder.glob("*.gguf"))
    if (folder / "config.json").is_file() and (any(folder.glob("*.safetensors*")) or not files):
        return SafetensorsFolder(folder)
    if len(files) == 1:
        return GgufFile(confined(folder, files[0].name), folder.name)
    if files:
        raise InputError(f"holds {len(files)} GGUF files", where=str(folder), hint=f"give one, as {files[0]}")
    hint = "give a folder with config.json and safetensors, or a GGUF file"
    raise InputError("holds no checkpoint", where=str(folder), hint=hint)
