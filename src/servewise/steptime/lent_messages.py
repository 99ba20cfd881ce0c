"""Message times of a deployment's accelerators: their own, or those that another accelerator's machine lends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from servewise.deployment.reserves import SWITCHED_BYTES_PER_S
from servewise.hardware.accelerator import Accelerator
from servewise.hardware.catalogue import catalogue
from servewise.steptime.coefficients import AllReduce, Knot
from servewise.steptime.shipped import Shipped

MEDIAN = "median"
PAIR = 2  # ranks


def all_reduce(table: Shipped, source: str, engine: str, accelerator: Accelerator) -> Mapping[int, AllReduce]:
    """The message times of ``source`` on the accelerator's own link.

    Where the links differ more than fourfold, those of the measured accelerator with the nearest link.
    """
    known = {name: link for name in table.accelerators if (link := _link_bytes_per_s(name))}
    own = accelerator.link.bandwidth.value if accelerator.link else None
    if source == accelerator.name or own is None:
        if source == MEDIAN:
            return _median_curves([curves for (_, of), curves in table.all_reduce.items() if of == engine])
        return table.all_reduce[source, engine]
    if source not in known or not links_alike(own, known[source]):
        source = min(known, key=lambda name: abs(math.log(own / known[name])))
    curves = table.all_reduce[source, engine]
    if source == accelerator.name:
        return curves
    ratio = own / known[source]
    return {ranks: each.with_bandwidth(ratio) for ranks, each in _lent(curves, known[source]).items()}


def _lent(curves: Mapping[int, AllReduce], link_bytes_per_s: float) -> Mapping[int, AllReduce]:
    """The message times that a card with that link lends to others.

    Of more than two ranks over PCIe they are a ring's over the times of two: how much slower four and eight are is the
    measured machine's (L40S: 3.3 GB/s over four where two take 20, staged across its sockets), not its card's. Eight
    RTX PRO 6000 reach 38 to 41 GB/s on the bus, 22 untuned (``tests/steptime/test_all_reduce.py``).
    """
    if link_bytes_per_s >= SWITCHED_BYTES_PER_S:
        return curves
    return {
        ranks: each if ranks == PAIR else curves[PAIR].ring(ranks, each.knots[0].seconds)
        for ranks, each in curves.items()
    }


def with_own(lent: Mapping[int, AllReduce], own: Mapping[int, AllReduce]) -> Mapping[int, AllReduce]:
    """What is lent, and what was measured on the card itself; of more ranks than that a ring's over its pair."""
    pair = own.get(PAIR)
    if pair is None:
        return {**lent, **own}
    least_s = pair.knots[0].seconds
    return {
        ranks: pair.ring(ranks, max(each.knots[0].seconds, least_s)) for ranks, each in lent.items() if ranks > PAIR
    } | dict(own)


def links_alike(one: float, other: float) -> bool:
    """Whether two link bandwidths are of one class (NVLink generations are, PCIe is another)."""
    return max(one, other) <= 4.0 * min(one, other)


def _link_bytes_per_s(name: str) -> float | None:
    link = catalogue()[name].link if name in catalogue() else None
    return link.bandwidth.value if link else None


def _median_curves(known: Sequence[Mapping[int, AllReduce]]) -> Mapping[int, AllReduce]:
    found = {}
    for ranks in sorted({each for curves in known for each in curves}):
        curves = [each[ranks] for each in known if ranks in each]
        sizes = [knot.bytes for knot in curves[0].knots]
        found[ranks] = AllReduce(tuple(Knot(s, median(each.seconds(s) for each in curves)) for s in sizes))
    return found
