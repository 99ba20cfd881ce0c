"""The client's own error: said when it would move a percentile by over 1%, and only then."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measure.bench import made

from servewise.measure.bench.saturated import CODE, client_saturated, delay_quantile
from servewise.measure.bench.summary import window_summary
from servewise.measure.bench.window import closed_window
from servewise.measure.sending import Sending
from servewise.metrics.summary import RunSummary

QUIET = Sending(wall_s=100.0, cpu_s=10.0)


def summary(late: float = 0.0) -> RunSummary:
    """200 requests of TTFT 0.2 s from when they were sent, each sent ``late`` after its time."""
    requests = made.deterministic(4, 50)
    for row in range(len(requests)):
        requests.scheduled_s[row] -= late
    return window_summary(requests, closed_window(requests, 4), None)


def test_a_client_that_kept_up_says_nothing() -> None:
    """No lateness, no stall, little processor time: no caveat, with kernel stamps and without."""
    for kernel in (True, False):
        assert client_saturated(summary(), QUIET, kernel=kernel, tokens=9) == ()


@pytest.mark.parametrize(("late", "said"), [(0.001, False), (0.003, True)])
def test_late_sends_count_above_one_percent_of_ttft(late: float, said: bool) -> None:
    """1 ms of a TTFT of 200 ms is half a percent, 3 ms is one and a half."""
    found = client_saturated(summary(late), QUIET, kernel=True, tokens=9)

    assert [each.code for each in found] == [CODE] * said


def test_stalls_matter_only_where_the_kernel_does_not_stamp() -> None:
    """10 s in 100 spent in stalls of 100 ms move p99 by 90 ms; with the kernel's own stamps by nothing."""
    stalled = Sending(wall_s=100.0, cpu_s=10.0, stalls_s=(0.1,) * 100)

    assert client_saturated(summary(), stalled, kernel=True, tokens=9) == ()
    (caveat,) = client_saturated(summary(), stalled, kernel=False, tokens=9)
    assert "reads came late" in caveat.message


def test_a_full_processor_is_said_with_how_many_workers_would_do() -> None:
    """Two workers at 95% of a core each need four to be at half of one."""
    (caveat,) = client_saturated(summary(), Sending(wall_s=100.0, cpu_s=190.0, workers=2), kernel=True, tokens=9)

    assert "95% of a core" in caveat.message
    assert caveat.cure.startswith("--workers 4 (now 2)")


@given(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=30), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_delays_quantile_is_that_of_arrivals_at_any_moment(stalls: list[float], share: float) -> None:
    """By its definition: P(D > x) = sum of max(s - x, 0) / run equals 1 - share at x, or is below it at 0."""
    wall = 20.0
    found = delay_quantile(stalls, wall, share)
    beyond = float(np.maximum(np.array(stalls) - found, 0).sum()) / wall

    assert beyond == pytest.approx(1 - share, rel=1e-6) or (found == 0 and beyond <= 1 - share + 1e-9)
