"""The time of one message between two ranks over a link or a network: latency + bytes / rate."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from servewise.errors import InputError, UnknownName
from servewise.hardware.accelerator import Accelerator
from servewise.hardware.catalogue import catalogue, load_accelerator

FILE = "links.csv"
UNLINKED = "Ethernet 10G"  # between accelerators whose catalogue entry names no link (assumed)


@dataclass(frozen=True, slots=True)
class LinkTime:
    """A message takes ``latency_s`` [s] + bytes / ``bytes_per_s`` [bytes/s], what two ranks reach in one direction.

    ``name`` is the link's, ``standing`` measured or assumed, ``source`` where the efficiency and latency come from.
    """

    latency_s: float
    bytes_per_s: float
    name: str = ""
    standing: str = ""
    source: str = ""

    def seconds(self, size: float) -> float:
        """The time of a message of ``size`` bytes [s]; no bytes, no message.

        >>> LinkTime(latency_s=10e-6, bytes_per_s=25e9).seconds(25_000_000)
        0.00101
        """
        return self.latency_s + size / self.bytes_per_s if size > 0 else 0.0


class _Row(NamedTuple):
    """What two ranks make of a link: ``pair_share`` of an accelerator's links join them, at ``efficiency``.

    ``bytes_per_s`` is a network's own nominal rate; the links of a node have theirs in the catalogue of accelerators.
    """

    bytes_per_s: float | None
    pair_share: float
    efficiency: float
    latency_s: float
    standing: str
    source: str

    def over(self, name: str, nominal: float) -> LinkTime:
        rate = nominal * self.pair_share * self.efficiency
        return LinkTime(self.latency_s, rate, name, self.standing, self.source)


def link_time(where: Accelerator | str) -> LinkTime:
    """The time of messages over ``where``.

    An accelerator (or the catalogue name of one) means the link between accelerators of its node; a name such as
    ``InfiniBand NDR`` means the network between nodes (``network_names``).

    Raises UnknownName for another name, InputError for an accelerator without a link.

    >>> round(link_time("InfiniBand NDR").seconds(1e9), 4)
    0.029
    """
    if not isinstance(where, str):
        return _of_accelerator(where)
    for name, row in _rows().items():
        if row.bytes_per_s is not None and _plain(name) == _plain(where):
            return row.over(name, row.bytes_per_s)
    return _of_accelerator(_known(where))


def network_names() -> tuple[str, ...]:
    """The networks between nodes that are known by name."""
    return tuple(name for name, row in _rows().items() if row.bytes_per_s is not None)


def _known(name: str) -> Accelerator:
    try:
        return load_accelerator(name)
    except UnknownName:
        raise UnknownName("link", name, (*network_names(), *catalogue()), hint="a network or an accelerator") from None


def _of_accelerator(accelerator: Accelerator) -> LinkTime:
    link = accelerator.link
    if link is None:
        raise InputError(f"{accelerator.name} has no link to others", hint="name the network between the nodes")
    fitting = [name for name in _rows() if link.name.startswith(name)]
    if not fitting:
        return LinkTime(link.latency.value, link.bandwidth.value, link.name, link.bandwidth.standing, "nominal")
    return _rows()[max(fitting, key=len)].over(link.name, link.bandwidth.value)


@lru_cache(maxsize=1)
def _rows() -> Mapping[str, _Row]:
    lines = files("servewise.steptime").joinpath(FILE).read_text("utf-8").splitlines()
    return {row["link"]: _row(row) for row in csv.DictReader(lines)}


def _row(row: Mapping[str, str]) -> _Row:
    return _Row(
        bytes_per_s=float(row["bytes_per_s"]) if row["bytes_per_s"] else None,
        pair_share=float(row["pair_share"]),
        efficiency=float(row["efficiency"]),
        latency_s=float(row["latency_s"]),
        standing=row["standing"],
        source=row["source"],
    )


def _plain(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum())
