"""The order of candidates: by cost where prices are known, by accelerators or goodput where they are not.

With a rate to carry, what counts is the cost of as many replicas as carry it; without one, the cost of a token at the
highest rate. The most goodput per accelerator and the fewest accelerators are two answers to two questions: the name of
the measure stands in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

from servewise.plan.cost import Cost
from servewise.plan.weighing import Weighed

Key = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """What candidates are ranked by: its name in the result, in words, its value, and the key, smallest first.

    The key of a highest rate and its cost never grows with the rate: so a bound above the rate gives one below the key.
    """

    name: str
    words: str
    value: Callable[[Cost], float | None]
    key: Callable[[float, Cost], Key]


def measure(*, priced: bool, rate_asked: bool) -> Measure:
    """The measure for what is known."""
    return _MEASURES[priced, rate_asked]


def _usd(value: float | None) -> float:
    return inf if value is None else value


_MEASURES = {
    (True, True): Measure(
        "usd_per_hour",
        "least cost of the replicas that carry the rate",
        lambda cost: cost.usd_per_hour,
        lambda rate, cost: (_usd(cost.usd_per_hour), cost.accelerators, -rate * cost.replicas),
    ),
    (True, False): Measure(
        "usd_per_million_output_tokens",
        "least cost of an output token at the highest rate",
        lambda cost: cost.usd_per_million_output_tokens,
        lambda rate, cost: (_usd(cost.usd_per_million_output_tokens), cost.accelerators, -rate),
    ),
    (False, True): Measure(
        "accelerators_in_all",
        "fewest accelerators that carry the rate (prices are not known)",
        lambda cost: cost.accelerators,
        lambda rate, cost: (cost.accelerators, -rate * cost.replicas),
    ),
    (False, False): Measure(
        "rate_per_accelerator_per_s",
        "highest rate per accelerator (prices are not known)",
        lambda cost: cost.rate_per_accelerator_per_s,
        lambda rate, cost: (-cost.rate_per_accelerator_per_s, cost.accelerators, -rate),
    ),
}


def ranked(found: Iterable[Weighed], cost: Callable[[Weighed], Cost], by: Measure) -> list[Weighed]:
    """Best first; equal ones in the order of their titles."""
    return sorted(found, key=lambda each: (*by.key(each.rate_per_s, cost(each)), each.candidate.title))
