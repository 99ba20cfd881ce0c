"""Traffic as a list, so that it can be scaled to a rate, cut to a stretch of itself, and made longer or shorter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from servewise.errors import InputError
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True)
class Traffic:
    """``requests`` in order of arrival, of a load whose mean rate is ``rate_per_s`` [requests/s].

    A stretch of a trace keeps the whole trace's rate: scaled to a rate, a busy stretch stays busier than the mean.
    """

    requests: tuple[Request, ...]
    rate_per_s: float

    def at_rate(self, rate_per_s: float) -> list[Request]:
        """The requests with their times scaled so that the load's mean rate is ``rate_per_s``."""
        factor = self.rate_per_s / rate_per_s
        return [each._replace(arrival_s=each.arrival_s * factor) for each in self.requests]

    def stretch(self, first: int, count: int) -> Traffic:
        """``count`` requests in a row from ``first``, times and serials counted from it."""
        part = self.requests[first : first + count]
        start = part[0].arrival_s
        cut = (each._replace(serial=serial, arrival_s=each.arrival_s - start) for serial, each in enumerate(part))
        return Traffic(tuple(cut), self.rate_per_s)

    def longer(self, factor: float) -> Traffic:
        """The same arrivals with prompts and outputs ``factor`` times as long, at least one token each."""
        scaled = (
            each._replace(
                prompt_tokens=max(1, round(each.prompt_tokens * factor)),
                output_tokens=max(1, round(each.output_tokens * factor)),
            )
            for each in self.requests
        )
        return Traffic(tuple(scaled), self.rate_per_s)

    @property
    def mean_output_tokens(self) -> float:
        """Mean output [tokens]."""
        return sum(each.output_tokens for each in self.requests) / len(self.requests)

    @property
    def longest_tokens(self) -> int:
        """The longest prompt with its output [tokens]."""
        return max(each.prompt_tokens + each.output_tokens for each in self.requests)


def traffic_of(requests: Sequence[Request]) -> Traffic:
    """Traffic of requests in order of arrival; its rate is gaps over the time they take.

    Raises InputError for fewer than two requests, or all at one moment: then there is no rate to scale.
    """
    span = requests[-1].arrival_s - requests[0].arrival_s if requests else 0.0
    if span <= 0:
        raise InputError("a plan needs at least two requests at different times", where="workload")
    return Traffic(tuple(requests), (len(requests) - 1) / span)


def stretches(traffic: Traffic, count: int, size: int) -> list[Traffic]:
    """``count`` stretches of ``size`` requests spread evenly over ``traffic``; all of it where it is shorter."""
    whole = len(traffic.requests)
    if whole <= size:
        return [traffic] * count
    last = whole - size
    return [traffic.stretch(round(last * index / max(count - 1, 1)), size) for index in range(count)]


def typical(traffic: Traffic, size: int) -> Traffic:
    """The stretch of ``size`` requests whose load [tokens/s] is nearest to the mean of all such stretches."""
    whole = len(traffic.requests)
    if whole <= size:
        return traffic
    found = stretches(traffic, min(32, ceil(whole / size)), size)
    loads = [_tokens_per_s(each) for each in found]
    middle = sum(loads) / len(loads)
    return min(zip(loads, range(len(found)), found, strict=True), key=lambda each: (abs(each[0] - middle), each[1]))[2]


def _tokens_per_s(traffic: Traffic) -> float:
    tokens = sum(each.prompt_tokens + each.output_tokens for each in traffic.requests)
    return tokens / max(traffic.requests[-1].arrival_s, 1e-9)
