"""Saturation against the study's closed forms and against queueing theory."""

from __future__ import annotations

import random

import pytest
from tests.plan.made import FlatStep, fixed, server

from servewise.batching.policies import Continuous, Dynamic, Static
from servewise.plan.saturation import Knee, backlog, between, saturation
from servewise.simulate.unit_step import UnitStep
from servewise.workload.request import Request


def lengths(count: int) -> list[Request]:
    """One-token prompts and lognormal outputs near the study's: median 58, sigma 0.77."""
    rng = random.Random(1)
    return [Request(serial, 0.0, 1, max(1, round(rng.lognormvariate(4.06, 0.77)))) for serial in range(count)]


def test_continuous_saturates_at_slots_over_mean() -> None:
    """Slots that never idle complete slots / mean output requests a step: the study's 8 / 78."""
    requests = lengths(4000)
    mean = sum(each.output_tokens for each in requests) / len(requests)
    knee = saturation(server(UnitStep(), Continuous(max_sequences=8, reserve_output=True), blocks=None), requests)

    assert knee.low_per_s < 8 / mean < knee.high_per_s
    assert knee.middle_per_s == pytest.approx(8 / mean, rel=0.03)


@pytest.mark.parametrize("policy", [Static(8), Dynamic(8, 20.0)])
def test_batchwise_saturates_at_slots_over_longest(policy: Static | Dynamic) -> None:
    """A full batch lasts as long as its longest: slots / mean longest of 8, the study's 8 / 203."""
    requests = lengths(4000)
    groups = [requests[first : first + 8] for first in range(0, len(requests), 8)]
    longest = sum(max(each.output_tokens for each in group) for group in groups) / len(groups)
    knee = saturation(server(UnitStep(), policy, blocks=None), requests)

    assert knee.middle_per_s == pytest.approx(8 / longest, rel=0.03)


def test_one_slot_serves_one_over_its_time() -> None:
    """Equal requests of 20 steps of 10 ms, one at a time: 5 a second, exactly."""
    knee = saturation(server(FlatStep(0.01), Continuous(max_sequences=1)), fixed(500, 1, 20).requests)

    assert knee.middle_per_s == pytest.approx(5.0, rel=0.01)


def test_backlog_is_there_at_once_and_fills_the_slots() -> None:
    """Few requests are repeated until the slots are filled as often as wanted."""
    found = backlog(fixed(10, 1, 1).requests, 25)

    assert len(found) == 30
    assert {0.0} == {each.arrival_s for each in found}
    assert list(range(30)) == [each.serial for each in found]


def test_nothing_completes_nothing_saturates() -> None:
    """Requests that the pool can never hold leave no rate, and no division by zero."""
    found = saturation(server(FlatStep(0.01), blocks=1), fixed(20, 500, 5).requests)

    assert Knee(0.0, 0.0) == found


def test_slow_and_fast_clocks_widen_the_knee() -> None:
    """The knee reaches at least from the slow clock's middle to the fast one's."""
    found = between(Knee(9, 11), Knee(8, 8), Knee(13, 13))

    assert found.low_per_s <= 8
    assert found.high_per_s >= 13
