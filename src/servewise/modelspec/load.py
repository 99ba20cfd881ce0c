"""MODEL as a user gives it: a catalogue name, a folder or file with a config.json, or a GGUF file."""

from __future__ import annotations

from servewise.modelspec.spec import ModelSpec


def load_model(name_or_path: str) -> ModelSpec:
    """The model of that catalogue name, config.json (or folder with one) or GGUF file.

    Raises UnknownName with the nearest names, InputError for a config that is malformed, lacks fields (named) or
    has an architecture that is not known.
    """
    raise NotImplementedError


def model_names() -> tuple[str, ...]:
    """The names of the models that ship with the package."""
    raise NotImplementedError
