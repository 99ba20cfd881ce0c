"""The TOML form of accelerators: the shipped catalogue's and a user's own file.

A number stands alone (its source is the table's ``source``) or as ``[number, "key of its source"]``; the sources are
listed once, each with address, date and standing. What a key does not say is refused, never guessed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from servewise.errors import InputError, UnknownName
from servewise.hardware.accelerator import Accelerator, Link, Quantity, Standing

FORMATS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")
ACCELERATOR_KEYS = ("title", "aliases", "source", "memory", "bandwidth", "peaks", "link", "kin", "notes")
USER_KEYS = ("name", "sources", "peak_flops", *ACCELERATOR_KEYS)
LINK_KEYS = ("name", "bandwidth", "latency")
SOURCE_KEYS = ("at", "date", "standing", "note")
MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit with the range in which a value of it is plausible, and an example."""

    name: str
    low: float
    high: float
    example: str


BYTES = _Unit("bytes", 1e8, 1e16, "80 GB is 80e9")
BYTES_PER_S = _Unit("bytes/s", 1e8, 1e16, "2,039 GB/s is 2039e9")
FLOPS = _Unit("FLOP/s", 1e9, 1e19, "312 TFLOP/s is 312e12")
SECONDS = _Unit("s", 1e-9, 1.0, "10 µs is 10e-6")


@dataclass(frozen=True, slots=True)
class _Source:
    """Where numbers of one table come from."""

    address: str
    date: str
    standing: Standing


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; InputError with the place for one that is missing, too large or malformed."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", where=str(path)) from None
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"is larger than {MAX_FILE_BYTES:,} bytes", where=str(path), hint="is it a TOML file?")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(path), hint="is it a TOML file?") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {' '.join(str(error).split())}", where=str(path)) from None
    except (RecursionError, ValueError, OverflowError):
        raise InputError(
            "is not TOML that can be read (nested too deep, or a number too long)", where=str(path)
        ) from None


def parse_catalogue(tables: Mapping[str, Any], where: str) -> tuple[dict[str, Accelerator], dict[str, list[str]]]:
    """The accelerators of a catalogue by name, and the aliases of each."""
    sources = _sources(tables.get("sources", {}), where)
    blocks = {name: _table(table, f"{where}: {name}") for name, table in tables.items() if name != "sources"}
    aliases = {name: _texts(table.get("aliases", []), f"{where}: {name}: aliases") for name, table in blocks.items()}
    found = {name: _accelerator(name, table, sources, f"{where}: {name}") for name, table in blocks.items()}
    return found, aliases


def parse_accelerator(table: Mapping[str, Any], name: str, where: str) -> Accelerator:
    """The accelerator that a user's file describes: three numbers are enough, the catalogue's keys are allowed.

    ``peak_flops`` stands for every format of ``FORMATS``; ``peaks`` tells them apart.
    """
    _only(table, USER_KEYS, where)
    if ("peak_flops" in table) == ("peaks" in table):
        raise InputError("give either peak_flops or peaks", where=where, hint="e.g. peak_flops = 312e12")
    own = _Source("given by the user" if where == "given by the user" else f"file {where}", "", "assumed")
    sources = {"": own} | _sources(table.get("sources", {}), where)
    block = {key: value for key, value in table.items() if key not in {"name", "sources", "peak_flops"}}
    if "peak_flops" in table:
        block["peaks"] = dict.fromkeys(FORMATS, table["peak_flops"])
    block.setdefault("source", "")
    block.setdefault("title", table.get("name", name))
    return _accelerator(_text(table.get("name", name), f"{where}: name"), block, sources, where)


def _accelerator(name: str, table: Mapping[str, Any], sources: Mapping[str, _Source], where: str) -> Accelerator:
    _only(table, ACCELERATOR_KEYS, where)
    missing = [key for key in ("memory", "bandwidth", "peaks") if key not in table]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}", where=where)
    key = _text(table.get("source", ""), f"{where}: source")

    def number(value: Any, unit: _Unit, what: str) -> Quantity:
        return _quantity(value, unit, key, sources, f"{where}: {what}")

    peaks = _table(table["peaks"], f"{where}: peaks")
    _only(peaks, FORMATS, f"{where}: peaks")
    if not peaks:
        raise InputError("needs at least one format", where=f"{where}: peaks", hint="e.g. bf16 = 312e12")
    link = _table(table.get("link", {}), f"{where}: link")
    return Accelerator(
        name=name,
        title=_text(table.get("title", name), f"{where}: title"),
        memory=number(table["memory"], BYTES, "memory"),
        bandwidth=number(table["bandwidth"], BYTES_PER_S, "bandwidth"),
        peaks={each: number(value, FLOPS, f"peaks: {each}") for each, value in peaks.items()},
        link=_link(link, number, where) if link else None,
        kin=_text(table["kin"], f"{where}: kin") if "kin" in table else None,
        notes=_text(table.get("notes", ""), f"{where}: notes"),
    )


def _link(table: Mapping[str, Any], number: Any, where: str) -> Link:
    _only(table, LINK_KEYS, f"{where}: link")
    missing = [key for key in LINK_KEYS if key not in table]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}", where=f"{where}: link")
    return Link(
        name=_text(table["name"], f"{where}: link: name"),
        bandwidth=number(table["bandwidth"], BYTES_PER_S, "link: bandwidth"),
        latency=number(table["latency"], SECONDS, "link: latency"),
    )


def _quantity(value: Any, unit: _Unit, key: str, sources: Mapping[str, _Source], where: str) -> Quantity:
    if isinstance(value, list):
        if len(value) != 2:
            raise InputError("is a number, or [number, source]", where=where, hint=f"in {unit.name}: {unit.example}")
        value, key = value[0], _text(value[1], where)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"must be a number, not {_short(value)}", where=where, hint=f"in {unit.name}: {unit.example}")
    if not unit.low <= value <= unit.high:
        raise InputError(f"{_short(value)} {unit.name} is out of range", where=where, hint=unit.example)
    if key not in sources:
        raise UnknownName("source", key, sources, where=where, hint="list it under [sources]")
    source = sources[key]
    return Quantity(float(value), unit.name, source.address, source.date, source.standing)


def _sources(table: Any, where: str) -> dict[str, _Source]:
    return {name: _source(each, f"{where}: sources: {name}") for name, each in _table(table, where).items()}


def _source(table: Any, where: str) -> _Source:
    _only(_table(table, where), SOURCE_KEYS, where)
    texts = {key: _text(table.get(key, ""), f"{where}: {key}") for key in SOURCE_KEYS}
    if texts["standing"] not in get_args(Standing) or not texts["at"]:
        raise InputError(f"needs at and standing, one of {', '.join(get_args(Standing))}", where=where)
    note = f" ({texts['note']})" if texts["note"] else ""
    standing: Standing = texts["standing"]  # type: ignore[assignment]  # checked above
    return _Source(texts["at"] + note, texts["date"], standing)


def _only(table: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise UnknownName("key", key, allowed, where=where, hint=f"known keys: {', '.join(allowed)}")


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"must be a table, not {_short(value)}", where=where)
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"must be text, not {_short(value)}", where=where)
    return value


def _texts(value: Any, where: str) -> list[str]:
    if not isinstance(value, list):
        raise InputError(f"must be a list of texts, not {_short(value)}", where=where)
    return [_text(each, where) for each in value]


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number too long to print"
    return text if len(text) <= 40 else text[:37] + "..."
