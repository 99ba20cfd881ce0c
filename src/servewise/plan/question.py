"""What a plan is asked, and what a candidate costs at a rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from servewise.metrics.slo import Slo
from servewise.plan.candidates import Candidate
from servewise.plan.cost import Cost, cost_of
from servewise.plan.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked. ``others`` are other stretches or seeds of the traffic, for intervals.

    ``prices`` are in dollars per accelerator-hour by accelerator name; one that is missing is not known. ``top``: how
    many of the best are wanted, None: all. ``most_accelerators``: how many there are, None: as many as it takes.
    ``prunes``: candidates that bounds rule out are not simulated; without it all are, for the same answer.
    """

    candidates: tuple[Candidate, ...]
    traffic: Traffic
    slo: Slo
    prices: Mapping[str, float]
    rate_per_s: float | None = None
    estimator: str | None = None
    hash_block_tokens: int | None = None
    others: tuple[Traffic, ...] = ()
    seed: int = 0
    top: int | None = None
    most_accelerators: int | None = None
    prunes: bool = True
    mean_output_tokens: float = field(init=False)

    def __post_init__(self) -> None:
        """Work out once what every cost needs."""
        object.__setattr__(self, "mean_output_tokens", self.traffic.mean_output_tokens)

    def cost(self, candidate: Candidate, max_rate_per_s: float) -> Cost:
        """What ``candidate`` costs for the rate that is asked, or at ``max_rate_per_s``, its own highest."""
        return cost_of(
            max_rate_per_s=max_rate_per_s,
            mean_output_tokens=self.mean_output_tokens,
            accelerators=candidate.accelerators,
            usd_per_accelerator_hour=self.prices.get(candidate.deployment.accelerator.name),
            rate_per_s=self.rate_per_s,
        )

    def affords(self, cost: Cost) -> bool:
        """Whether there are as many accelerators as that."""
        return self.most_accelerators is None or cost.accelerators <= self.most_accelerators

    @property
    def any_price(self) -> bool:
        """Whether the price of any candidate is known."""
        return any(each.deployment.accelerator.name in self.prices for each in self.candidates)
