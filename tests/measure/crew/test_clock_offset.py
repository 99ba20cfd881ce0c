"""The estimate of another host's clock: the truth lies within the bound, however long each way takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.measure.crew.clock_offset import HostClock, Offset, Ping, offset_of

ROUNDING_S = 1e-6  # of float seconds, at clocks of up to a year
WAYS_S = st.floats(0, 10)
DELAYS = st.lists(st.tuples(WAYS_S, WAYS_S), min_size=1, max_size=30)
OFFSETS_S = st.floats(-3e7, 3e7)
DRIFTS = st.floats(-1e-3, 1e-3)  # ten times what quartz is off by


def pings(delays: list[tuple[float, float]], offset_s: float, drift: float = 0.0, from_s: float = 0.0) -> list[Ping]:
    """Round trips to a host whose clock reads true time x (1 + drift) + offset: each way takes its own time."""
    found, now_s = [], from_s
    for there_s, back_s in delays:
        reading_s = (now_s + there_s) * (1 + drift) + offset_s
        found.append(Ping(now_s, reading_s, now_s + there_s + back_s))
        now_s += there_s + back_s + 0.001
    return found


@given(delays=DELAYS, offset_s=OFFSETS_S)
def test_the_true_offset_lies_within_the_bound(delays: list[tuple[float, float]], offset_s: float) -> None:
    """Any delays, also with one way free and the other slow: |estimate - truth| is half the shortest round trip."""
    found = offset_of(pings(delays, offset_s))
    assert abs(found.offset_s - offset_s) <= found.bound_s + ROUNDING_S
    assert found.bound_s == pytest.approx(min(map(sum, delays)) / 2, abs=ROUNDING_S)


@given(delays=DELAYS, offset_s=OFFSETS_S, way_s=WAYS_S)
def test_more_pings_never_loosen_it(delays: list[tuple[float, float]], offset_s: float, way_s: float) -> None:
    """A further round trip keeps the bound or tightens it, and equal ways give the offset itself."""
    known = pings(delays, offset_s)
    more = offset_of(pings([*delays, (way_s, way_s)], offset_s))
    assert more.bound_s <= offset_of(known).bound_s + ROUNDING_S
    alone = offset_of(pings([(way_s, way_s)], offset_s))
    assert alone.offset_s == pytest.approx(offset_s, abs=ROUNDING_S)


@given(before=DELAYS, after=DELAYS, offset_s=OFFSETS_S, drift=DRIFTS, run_s=st.floats(0, 1e4), share=st.floats(0, 1))
def test_a_drifting_clock_is_within_the_bound_of_the_run(
    before: list[tuple[float, float]],
    after: list[tuple[float, float]],
    offset_s: float,
    drift: float,
    run_s: float,
    share: float,
) -> None:
    """Clocks that run apart: the drift lies within its bound, and so does every moment between the two estimates."""
    first = offset_of(pings(before, offset_s, drift))
    second = offset_of(pings(after, offset_s, drift, from_s=run_s + 1000.0))
    clock = HostClock(first, second)
    truth = [each.at_s * drift + offset_s for each in (first, second)]
    slack_s = ROUNDING_S + abs(drift) * (first.bound_s + second.bound_s)  # the clock runs on within a round trip
    assert clock.drift_s is not None
    assert clock.drift_bound_s is not None
    assert abs(clock.drift_s - (truth[1] - truth[0])) <= clock.drift_bound_s + slack_s
    moment = truth[0] + share * (truth[1] - truth[0])
    assert abs(moment - first.offset_s) <= clock.bound_s + slack_s


def test_without_a_second_estimate_the_drift_is_not_known() -> None:
    """A host that was lost has the bound of before, and no drift."""
    clock = HostClock(Offset(5.0, 0.1, 0.0, 16))
    assert (clock.drift_s, clock.drift_bound_s, clock.bound_s) == (None, None, 0.1)
