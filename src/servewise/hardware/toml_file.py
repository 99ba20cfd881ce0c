"""The TOML form of accelerators: the shipped catalogue's and a user's own file.

A number stands alone (its source is the table's ``source``) or as ``[number, "key of its source"]``; the sources are
listed once, each with address, date and standing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from servewise.errors import InputError, UnknownName
from servewise.hardware.accelerator import (
    BYTES,
    BYTES_PER_S,
    FLOPS,
    SECONDS,
    Accelerator,
    Link,
    Quantity,
    Standing,
)
from servewise.tables import Unit, as_list, as_number, as_table, as_text, needs, only

FORMATS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")
ACCELERATOR_KEYS = ("title", "aliases", "source", "memory", "bandwidth", "peaks", "link", "kin", "notes")
USER_KEYS = ("name", "sources", "peak_flops", *ACCELERATOR_KEYS)
LINK_KEYS = ("name", "bandwidth", "latency")
SOURCE_KEYS = ("at", "date", "standing", "note")


@dataclass(frozen=True, slots=True)
class Source:
    """Where numbers of one table come from."""

    address: str
    date: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Numbers:
    """The reader of one table's numbers: the sources that may be named, and the one that holds where none is."""

    sources: Mapping[str, Source]
    default: str
    where: str

    def read(self, value: Any, unit: Unit, what: str) -> Quantity:
        """``value``, or ``[value, source]``, as a Quantity in ``unit``; InputError where it is neither."""
        where, key = f"{self.where}: {what}", self.default
        if isinstance(value, list):
            if len(value) != 2:
                raise InputError(
                    "is a number, or [number, source]", where=where, hint=f"in {unit.name}: {unit.example}"
                )
            value, key = value[0], as_text(value[1], where)
        number = as_number(value, unit, where)
        if key not in self.sources:
            raise UnknownName("source", key, self.sources, where=where, hint="list it under [sources]")
        source = self.sources[key]
        return Quantity(number, unit.name, source.address, source.date, source.standing)


def parse_catalogue(tables: Mapping[str, Any], where: str) -> tuple[dict[str, Accelerator], dict[str, list[str]]]:
    """The accelerators of a catalogue by name, and the aliases of each."""
    sources = _sources(tables.get("sources", {}), where)
    blocks = {name: as_table(table, f"{where}: {name}") for name, table in tables.items() if name != "sources"}
    found = {name: _accelerator(name, table, sources, f"{where}: {name}") for name, table in blocks.items()}
    return found, {name: _aliases(table, f"{where}: {name}") for name, table in blocks.items()}


def parse_accelerator(table: Mapping[str, Any], name: str, where: str) -> Accelerator:
    """The accelerator that a user's file describes: three numbers are enough, the catalogue's keys are allowed.

    ``peak_flops`` stands for every format of ``FORMATS``; ``peaks`` tells them apart.
    """
    only(table, USER_KEYS, where)
    if ("peak_flops" in table) == ("peaks" in table):
        raise InputError("give either peak_flops or peaks", where=where, hint="e.g. peak_flops = 312e12")
    own = Source("given by the user" if where == "given by the user" else f"file {where}", "", "assumed")
    sources = {"": own} | _sources(table.get("sources", {}), where)
    block = {key: value for key, value in table.items() if key in ACCELERATOR_KEYS}
    if "peak_flops" in table:
        block["peaks"] = dict.fromkeys(FORMATS, table["peak_flops"])
    name = as_text(table.get("name", name), f"{where}: name")
    return _accelerator(name, {"source": "", "title": name} | block, sources, where)


def _accelerator(name: str, table: Mapping[str, Any], sources: Mapping[str, Source], where: str) -> Accelerator:
    only(table, ACCELERATOR_KEYS, where)
    needs(table, ("memory", "bandwidth", "peaks"), where)
    _aliases(table, where)
    numbers = Numbers(sources, as_text(table.get("source", ""), f"{where}: source"), where)
    peaks = as_table(table["peaks"], f"{where}: peaks")
    only(peaks, FORMATS, f"{where}: peaks")
    if not peaks:
        raise InputError("needs at least one format", where=f"{where}: peaks", hint="e.g. bf16 = 312e12")
    return Accelerator(
        name=name,
        title=as_text(table.get("title", name), f"{where}: title"),
        memory=numbers.read(table["memory"], BYTES, "memory"),
        bandwidth=numbers.read(table["bandwidth"], BYTES_PER_S, "bandwidth"),
        peaks={each: numbers.read(value, FLOPS, f"peaks: {each}") for each, value in peaks.items()},
        link=_link(table["link"], numbers) if "link" in table else None,
        kin=as_text(table["kin"], f"{where}: kin") if "kin" in table else None,
        notes=as_text(table.get("notes", ""), f"{where}: notes"),
    )


def _link(value: Any, numbers: Numbers) -> Link:
    where = f"{numbers.where}: link"
    table = as_table(value, where)
    only(table, LINK_KEYS, where)
    needs(table, LINK_KEYS, where)
    return Link(
        name=as_text(table["name"], f"{where}: name"),
        bandwidth=numbers.read(table["bandwidth"], BYTES_PER_S, "link: bandwidth"),
        latency=numbers.read(table["latency"], SECONDS, "link: latency"),
    )


def _aliases(table: Mapping[str, Any], where: str) -> list[str]:
    where = f"{where}: aliases"
    return [as_text(each, where) for each in as_list(table.get("aliases", []), where)]


def _sources(value: Any, where: str) -> dict[str, Source]:
    where = f"{where}: sources"
    return {name: _source(each, f"{where}: {name}") for name, each in as_table(value, where).items()}


def _source(value: Any, where: str) -> Source:
    table = as_table(value, where)
    only(table, SOURCE_KEYS, where)
    texts = {key: as_text(table.get(key, ""), f"{where}: {key}") for key in SOURCE_KEYS}
    if texts["standing"] not in get_args(Standing) or not texts["at"]:
        raise InputError(f"needs at and standing, one of {', '.join(get_args(Standing))}", where=where)
    note = f" ({texts['note']})" if texts["note"] else ""
    standing: Standing = texts["standing"]  # type: ignore[assignment]  # checked above
    return Source(texts["at"] + note, texts["date"], standing)
