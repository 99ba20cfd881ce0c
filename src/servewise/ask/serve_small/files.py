"""The same model as each server takes it: written once into a cache, by the source's own name, size and date."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from servewise.ask.models import write_model
from servewise.ask.serve_small.int8_checkpoint import write_int8
from servewise.engine.checkpoints.library import find_checkpoint
from servewise.errors import InputError

Tell = Callable[[str], None]


class ModelFiles:
    """Files of ``model`` in ``cache``."""

    def __init__(self, model: str, cache: Path, tell: Tell) -> None:
        source = find_checkpoint(model)
        found = source.stat()
        key = hashlib.sha256(f"{source.resolve()}\0{found.st_size}\0{found.st_mtime_ns}".encode()).hexdigest()[:12]
        self._model, self._folder, self._tell = model, cache / key, tell

    def gguf(self, dtype: str) -> Path:
        """The GGUF file with weights in ``dtype``."""
        return self._written(self._folder / f"{dtype}.gguf", "gguf", dtype)

    def folder(self, dtype: str = "bf16") -> Path:
        """The safetensors folder."""
        return self._written(self._folder / f"safetensors-{dtype}", "safetensors", dtype)

    def int8_folder(self) -> Path:
        """The safetensors folder with 8-bit weights."""
        path = self._folder / "safetensors-int8"
        if not path.exists():
            source = self.folder()
            self._tell("writing the model as safetensors, int8")
            write_int8(source, path)
        return path

    def _written(self, path: Path, kind: str, dtype: str) -> Path:
        if not path.exists():
            self._tell(f"writing the model as {kind}, {dtype}")
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot be made ({error.strerror})", where=str(self._folder)) from error
            write_model(self._model, path, format=kind, dtype=dtype)
        return path
