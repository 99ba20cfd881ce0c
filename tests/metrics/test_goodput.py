"""Which requests count as good."""

from __future__ import annotations

import numpy as np
from tests.metrics import made

from servewise.metrics.goodput import attained
from servewise.metrics.slo import parse_slo
from servewise.records.columns import FAILED, REJECTED


def test_a_good_request_keeps_every_bound() -> None:
    """By hand, TTFT <= 1 s and TPOT <= 0.1 s: kept both; late; slow; one token in time; failed; rejected."""
    run = made.requests(
        scheduled=[0.0] * 6,
        first=[1.0, 1.1, 1.0, 0.5, 0.5, np.nan],
        end=[2.0, 2.1, 2.2, 0.5, 0.6, np.nan],
        output=[11, 11, 11, 1, 2, 0],
        status=[0, 0, 0, 0, FAILED, REJECTED],
    )
    good = attained(run, parse_slo("ttft_p95<=1s, tpot_p50<=100ms"))
    assert good.tolist() == [True, False, False, True, False, False]


def test_end_to_end_and_itl_bounds_count_too() -> None:
    """An end-to-end bound, and an ITL bound judged by the request's mean gap, each fail their request."""
    run = made.requests([0.0, 0.0], [1.0, 1.0], [2.0, 3.0], [11, 11])
    assert attained(run, parse_slo("e2e_p95<=2s")).tolist() == [True, False]
    assert attained(run, parse_slo("itl_p99<=150ms")).tolist() == [True, False]
