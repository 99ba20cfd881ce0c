"""How many repeats are enough, by hand-computed intervals."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.measure.bench import made

from servewise.measure.bench.enough import enough, half_widths
from servewise.measure.bench.order import block
from servewise.measure.bench.summary import window_summary
from servewise.measure.bench.window import closed_window
from servewise.metrics.summary import RunSummary

REQUESTS = made.deterministic(2, 20)
BASE = window_summary(REQUESTS, closed_window(REQUESTS, 2), None)


def with_throughput(*values: float) -> list[RunSummary]:
    """Repeats that differ in their throughput alone."""
    return [replace(BASE, output_tokens_per_s=value) for value in values]


def test_half_widths_are_students() -> None:
    """Of 99, 100, 101: s = 1, t(0.975, 2) = 4.3027, half width 4.3027 / sqrt(3) = 2.484, 2.484% of the mean."""
    widths = half_widths(with_throughput(99, 100, 101))

    assert widths["output_tokens_per_s"] == pytest.approx(0.02484, abs=1e-5)
    assert widths["ttft_p50"] == 0


def test_repeats_go_on_until_every_interval_is_narrow() -> None:
    """2.5% is within 3% and not within 2%; two repeats are never enough, nor one."""
    assert enough(with_throughput(99, 100, 101), 0.03)
    assert not enough(with_throughput(99, 100, 101), 0.02)
    assert not enough(with_throughput(100, 100), 0.5)
    assert half_widths(with_throughput(100))["output_tokens_per_s"] == math.inf


def test_every_repeat_is_a_block_of_all_conditions_in_an_order_of_its_own() -> None:
    """No condition is missing or twice, the seed fixes the order, and the orders differ between repeats."""
    conditions = list(range(8))
    orders = [block(conditions, 7, repeat) for repeat in range(6)]

    assert all(sorted(order) == conditions for order in orders)
    assert orders == [block(conditions, 7, repeat) for repeat in range(6)]
    assert len({tuple(order) for order in orders}) == 6
