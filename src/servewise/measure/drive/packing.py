"""Exchanges on their way from a worker: their arrivals as plain numbers, a tenth of the work of pickled objects."""

from __future__ import annotations

from array import array
from dataclasses import fields
from typing import Any

from servewise.measure.exchange import Arrival, Exchange

UNKNOWN = -1  # tokens of an arrival whose event did not say
_NAMES = tuple(each.name for each in fields(Exchange) if each.name != "arrivals")

Packed = tuple[tuple[Any, ...], bytes, bytes, bytes]


def packed(exchange: Exchange) -> Packed:
    """The fields but the arrivals, then the arrivals' times, tokens and kinds."""
    arrivals = exchange.arrivals
    return (
        tuple(getattr(exchange, name) for name in _NAMES),
        array("d", [each.time_s for each in arrivals]).tobytes(),
        array("q", [UNKNOWN if each.tokens is None else each.tokens for each in arrivals]).tobytes(),
        bytes(each.reasoning for each in arrivals),
    )


def unpacked(data: Packed) -> Exchange:
    """The exchange again."""
    values, times, tokens, reasoning = data
    counts = [None if each == UNKNOWN else each for each in array("q", tokens)]
    arrivals = tuple(map(Arrival, array("d", times), counts, map(bool, reasoning)))
    return Exchange(arrivals=arrivals, **dict(zip(_NAMES, values, strict=True)))
