"""What a plan is to find, as it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.ask.numbers import positive, whole
from servewise.ask.plan_prices import Prices
from servewise.metrics.slo import Slo, parse_slo


def slo_named(slo: str | Slo) -> Slo:
    """The SLO of that text; an Slo passes through."""
    return parse_slo(slo) if isinstance(slo, str) else slo


def rate_named(rate: float | None) -> float | None:
    """The rate to carry [requests/s], None: none is asked."""
    return None if rate is None else positive(rate, "rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """The arguments of ``plan`` that say what is to be found, and by which figures.

    ``rate_per_s``: the rate to carry, refused requests included.
    """

    slo: Slo
    rate_per_s: float | None
    max_accelerators: int | None
    top: int | None
    prune: bool
    prices: Prices
    estimator: str | None

    @property
    def most_ranked(self) -> int | None:
        """How many of the best are ranked, None: all."""
        return None if self.top is None else whole(self.top, "top")

    @property
    def most_accelerators(self) -> int | None:
        """How many there are, None: as many as it takes."""
        return None if self.max_accelerators is None else whole(self.max_accelerators, "max_accelerators")
