"""Intervals of replicates by hand."""

from __future__ import annotations

from math import exp, log

import pytest
from tests.plan.made import candidate, weighed

from servewise.ask.replicates import around, together


def test_distances_join_in_quadrature() -> None:
    """A run's own factor of e^0.3 up and the slow clock's e^0.4 make e^0.5; nothing lies below but its own e^0.3."""
    low, high = around(1.0, (exp(-0.3), exp(0.3)), 2.0, 2.0 * exp(0.4), 2.0)

    assert log(high) == pytest.approx(0.5)
    assert log(low) == pytest.approx(-0.3)


def test_a_percentile_that_moves_neither_way_keeps_its_interval() -> None:
    """Where slow and fast clocks give the same, the seeds' interval stays as it is."""
    assert around(5.0, (4.0, 7.0), 1.0, 1.0, 1.0) == pytest.approx((4.0, 7.0))


def test_without_a_bracket_it_is_the_pool() -> None:
    """An estimator without spread adds nothing."""
    summary = weighed(candidate(), 1.0).summary

    assert together([summary], None, None) == summary


def test_an_interval_that_reaches_zero_begins_at_zero() -> None:
    """Two seeds that differ much say nothing of how low the mean may lie; that is not the same as certainty below."""
    assert around(3.0, (-4.0, 10.0), 1.0, 1.0, 1.0) == pytest.approx((0.0, 10.0))
    assert around(3.0, (0.0, 10.0), 1.0, 1.5, 0.9)[0] == 0.0
