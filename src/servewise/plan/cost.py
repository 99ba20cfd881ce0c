"""What a deployment costs at its highest rate, and what it takes to carry a given one."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

HOUR_S = 3600.0
MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Prices are None where the accelerator's is not known.

    ``replicas`` carry the rate that was asked for (1 where none was); ``usd_per_hour`` is of all of them;
    ``usd_per_million_output_tokens`` at the rate that they serve: the one asked for, or the highest.
    """

    replicas: int
    accelerators: int
    usd_per_hour: float | None
    usd_per_million_output_tokens: float | None
    rate_per_accelerator_per_s: float


def cost_of(
    *,
    max_rate_per_s: float,
    mean_output_tokens: float,
    accelerators: int,
    usd_per_accelerator_hour: float | None,
    rate_per_s: float | None = None,
) -> Cost:
    """The cost of replicas of ``accelerators`` accelerators, each good for ``max_rate_per_s`` requests/s.

    Replicas are independent, and a router that splits the load evenly in the mean is assumed. With ``rate_per_s`` there
    are as many as carry it, half idle or not; without, one at its highest rate.

    >>> cost_of(
    ...     max_rate_per_s=2.0, mean_output_tokens=250, accelerators=1, usd_per_accelerator_hour=1.8
    ... ).usd_per_million_output_tokens
    1.0
    """
    replicas = 1 if rate_per_s is None else max(1, ceil(rate_per_s / max_rate_per_s - 1e-9))
    served = max_rate_per_s if rate_per_s is None else rate_per_s
    in_all = replicas * accelerators
    hourly = None if usd_per_accelerator_hour is None else usd_per_accelerator_hour * in_all
    tokens_per_hour = served * mean_output_tokens * HOUR_S
    return Cost(
        replicas=replicas,
        accelerators=in_all,
        usd_per_hour=hourly,
        usd_per_million_output_tokens=None if hourly is None else hourly / tokens_per_hour * MILLION,
        rate_per_accelerator_per_s=max_rate_per_s / accelerators,
    )
