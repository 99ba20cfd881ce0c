"""The accelerators that ship with the package, and a user's own TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from servewise.errors import InputError, UnknownName
from servewise.hardware.accelerator import Accelerator
from servewise.hardware.toml_file import parse_accelerator, parse_catalogue
from servewise.tables import read_toml

CATALOGUE_FILE = Path(__file__).with_name("catalogue.toml")
# What engines and drivers print around the part of the name that tells devices apart.
VENDOR_WORDS = {"nvidia", "amd", "intel", "google", "apple", "cloud", "tesla", "geforce", "instinct", "gpu"}


def catalogue() -> Mapping[str, Accelerator]:
    """Every accelerator that ships with the package, by name; read once."""
    return _shipped()[0]


def load_accelerator(name_or_path: str) -> Accelerator:
    """The accelerator of that catalogue name (or a name as engines print it), or the one described in a TOML file.

    The smallest file holds three numbers, ``peak_flops`` [FLOP/s], ``bandwidth`` [bytes/s] and ``memory`` [bytes];
    the other keys are those of ``catalogue.toml``. Raises UnknownName with the nearest names, InputError for a file
    that cannot be read as one.

    >>> load_accelerator("NVIDIA A100-SXM4-80GB").name
    'a100-80gb'
    """
    accelerators, names = _shipped()
    found = names.get(_plain(name_or_path))
    if found is not None and not name_or_path.endswith(".toml"):
        return accelerators[found]
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        described = parse_accelerator(read_toml(Path(name_or_path)), Path(name_or_path).stem, name_or_path)
        if described.kin not in (None, *accelerators):
            raise UnknownName("accelerator", described.kin or "", accelerators, where=f"{name_or_path}: kin")
        return described
    raise UnknownName("accelerator", name_or_path, accelerators, hint="give a catalogue name or a TOML file")


def custom_accelerator(
    *, peak_flops: float, bandwidth: float, memory: float, name: str = "custom", title: str = ""
) -> Accelerator:
    """Any accelerator by three numbers: dense peak [FLOP/s], memory bandwidth [bytes/s], memory [bytes].

    The peak holds for every format. Raises InputError where a number is not positive or absurd.

    >>> custom_accelerator(peak_flops=312e12, bandwidth=2e12, memory=80e9).peak_flops("fp8")
    312000000000000.0
    """
    table = {"peak_flops": peak_flops, "bandwidth": bandwidth, "memory": memory, "title": title or name}
    return parse_accelerator(table, name, "given by the user")


@cache
def _shipped() -> tuple[Mapping[str, Accelerator], Mapping[str, str]]:
    accelerators, aliases = parse_catalogue(read_toml(CATALOGUE_FILE), CATALOGUE_FILE.name)
    names: dict[str, str] = {}
    for name, given in aliases.items():
        for alias in (name, accelerators[name].title, *given):
            if names.setdefault(_plain(alias), name) != name:
                raise InputError(f"{alias!r} names two accelerators", where=CATALOGUE_FILE.name)
    return MappingProxyType(accelerators), names


def _plain(name: str) -> str:
    words = re.split(r"[^a-z0-9]+", name.lower())
    return "".join(word for word in words if word not in VENDOR_WORDS)
