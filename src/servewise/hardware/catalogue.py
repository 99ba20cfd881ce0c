"""The accelerators that ship with the package, and a user's own TOML file."""

from __future__ import annotations

from collections.abc import Mapping

from servewise.hardware.accelerator import Accelerator


def catalogue() -> Mapping[str, Accelerator]:
    """Every accelerator that ships with the package, by name."""
    raise NotImplementedError


def load_accelerator(name_or_path: str) -> Accelerator:
    """The accelerator of that catalogue name, or the one described in a TOML file.

    Raises UnknownName with the nearest names, InputError for a file that cannot be read as one.
    """
    raise NotImplementedError
