"""Traffic is scaled and cut without losing what the trace is."""

from __future__ import annotations

import pytest
from tests.plan.made import poisson

from servewise.errors import InputError
from servewise.plan.traffic import Traffic, stretches, traffic_of, typical
from servewise.workload.request import Request


def test_rate_is_gaps_over_their_time() -> None:
    """Three requests over two seconds are two gaps in two seconds: 1/s."""
    found = traffic_of([Request(0, 5.0, 1, 1), Request(1, 6.5, 1, 1), Request(2, 7.0, 1, 1)])

    assert found.rate_per_s == 1.0


def test_scaling_keeps_the_pattern() -> None:
    """At twice the rate every gap is half as long, and nothing else changes."""
    traffic = poisson(50)
    scaled = traffic.at_rate(2 * traffic.rate_per_s)

    assert [each.arrival_s / 2 for each in traffic.requests] == pytest.approx([each.arrival_s for each in scaled])
    assert [each[2:] for each in traffic.requests] == [each[2:] for each in scaled]


def test_a_busy_stretch_stays_busier() -> None:
    """A stretch keeps the whole trace's rate, so ten times denser arrivals stay ten times denser at any rate."""
    slow = [Request(serial, serial * 1.0, 1, 1) for serial in range(100)]
    dense = [Request(100 + serial, 100 + serial * 0.1, 1, 1) for serial in range(100)]
    whole = traffic_of(slow + dense)
    gaps = [each.stretch(first, 50).at_rate(1.0)[-1].arrival_s for each, first in ((whole, 10), (whole, 120))]

    assert gaps[0] == pytest.approx(10 * gaps[1])


def test_a_stretch_starts_at_zero() -> None:
    """Times and serials count from the stretch's own first request, as the simulator wants them."""
    part = poisson(100).stretch(40, 10)

    assert part.requests[0].arrival_s == 0.0
    assert list(range(10)) == [each.serial for each in part.requests]


def test_typical_stretch_is_near_the_mean_load() -> None:
    """Of a calm half and a rushed tenth, the stretch nearest to the mean load is in neither extreme."""
    calm = [Request(serial, serial * 1.0, 100, 10) for serial in range(3000)]
    usual = [Request(3000 + serial, 3000 + serial * 0.5, 100, 10) for serial in range(3000)]
    rushed = [Request(6000 + serial, 4500 + serial * 0.05, 100, 10) for serial in range(3000)]
    found = typical(traffic_of(calm + usual + rushed), 1000)
    loads = 110 * 1000 / found.requests[-1].arrival_s

    assert 110 / 1.0 < loads < 110 / 0.05


def test_stretches_cover_both_ends() -> None:
    """The first stretch begins with the trace, the last ends with it."""
    traffic = poisson(1000)
    first, *_, last = stretches(traffic, 4, 100)

    assert [each.prompt_tokens for each in traffic.requests[:100]] == [each.prompt_tokens for each in first.requests]
    assert [each.prompt_tokens for each in traffic.requests[-100:]] == [each.prompt_tokens for each in last.requests]


def test_short_traffic_is_its_own_stretch() -> None:
    """Traffic shorter than a stretch is used whole."""
    traffic = poisson(10)

    assert typical(traffic, 100) is traffic


def test_longer_requests_keep_at_least_a_token() -> None:
    """A tenth of one token is still one token: no request vanishes."""
    shorter = Traffic((Request(0, 0.0, 1, 1), Request(1, 1.0, 10, 20)), 1.0).longer(0.1)

    assert [(each.prompt_tokens, each.output_tokens) for each in shorter.requests] == [(1, 1), (1, 2)]


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 1.0, 1.0]])
def test_no_rate_no_plan(times: list[float]) -> None:
    """Fewer than two moments have no rate that could be scaled, and are refused."""
    with pytest.raises(InputError, match="at least two requests"):
        traffic_of([Request(serial, at, 1, 1) for serial, at in enumerate(times)])
