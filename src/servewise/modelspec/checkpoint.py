"""A checkpoint's folder: its config.json, and what the files beside it add."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from servewise.errors import InputError
from servewise.modelspec.hf_config import parse_config, read_json
from servewise.modelspec.spec import ModelSpec

MOST_CONFIG_BYTES = 2**25  # a real config.json is under 1 MB
MOST_INDEX_BYTES = 2**28
INDEX, SINGLE, MODELOPT = "model.safetensors.index.json", "model.safetensors", "hf_quant_config.json"


def read_folder(folder: Path, name: str) -> ModelSpec:
    """The model of a folder with a ``config.json``.

    Read beside it are ModelOpt's ``hf_quant_config.json``, where the config has no ``quantization_config`` of its
    own, and the size of the safetensors. Raises InputError where there is no config or one that cannot be counted.
    """
    config = folder / "config.json"
    if not config.is_file():
        raise InputError("no config.json in this folder", where=str(folder), hint="give the checkpoint's folder")
    content = read_json(read_text(config, MOST_CONFIG_BYTES), str(config))
    model = parse_config(_with_modelopt(content, folder), name=name, source=str(config), where=str(config))
    return with_stored_bytes(model, folder)


def _with_modelopt(config: Any, folder: Path) -> Any:
    path = folder / MODELOPT
    if not isinstance(config, dict) or config.get("quantization_config") is not None or not path.is_file():
        return config
    content = read_json(read_text(path, MOST_INDEX_BYTES), str(path))
    settings = content.get("quantization") if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise InputError("lacks the object 'quantization'", where=str(path))
    return config | {"quantization_config": settings | {"quant_method": "modelopt"}}


def with_stored_bytes(model: ModelSpec, folder: Path) -> ModelSpec:
    """``model`` with the exact bytes of its safetensors, where an index or a single file states them.

    Left alone where drafting layers are in the checkpoint: plain decoding does not load them.
    """
    if any("prediction" in each for each in model.uncounted):
        return model
    size = _indexed_bytes(folder / INDEX) or _single_bytes(folder / SINGLE)
    return replace(model, checkpoint_bytes=size) if size else model


def _indexed_bytes(index: Path) -> int | None:
    if not index.is_file():
        return None
    content = read_json(read_text(index, MOST_INDEX_BYTES), str(index))
    metadata = content.get("metadata") if isinstance(content, dict) else None
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return total if isinstance(total, int) and not isinstance(total, bool) and 0 < total < 2**60 else None


def _single_bytes(path: Path) -> int | None:
    """The bytes behind a safetensors header, whose length stands in the file's first 8 bytes."""
    if not path.is_file():
        return None
    with opened(path) as file:
        header = int.from_bytes(file.read(8), "little")
    size = path.stat().st_size - 8 - header
    return size if size > 0 else None


def read_text(path: Path, most_bytes: int) -> str:
    """The file's text; raises InputError where it cannot be read, is larger than ``most_bytes`` or not UTF-8."""
    with opened(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise InputError(f"larger than {most_bytes} bytes, so not a config", where=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", where=str(path)) from None


def opened(path: Path) -> BinaryIO:
    """The file, open for reading; raises InputError where that fails."""
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path)) from None
