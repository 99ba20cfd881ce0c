"""A claimed speed-up: reproduced, refuted, undecided."""

from __future__ import annotations

import pytest

from servewise.errors import InputError
from servewise.metrics.claim import judge, parse_claim
from servewise.metrics.comparison import Comparison
from servewise.metrics.percentiles import Interval


def row(metric: str, ratio: float, ci95: Interval | None) -> Comparison:
    """A row of that ratio."""
    return Comparison(metric, 1.0, ratio, ratio, ci95, "unclear", paired=True)


@pytest.mark.parametrize(
    ("ratio", "ci95", "verdict"),
    [
        (2.1, (1.95, 2.2), "reproduced"),
        (3.0, (2.5, 3.5), "reproduced"),
        (1.92, (1.90, 1.94), "reproduced"),
        (1.41, (1.35, 1.47), "refuted"),
        (1.9, (1.6, 2.3), "undecided"),
        (2.5, None, "undecided"),
    ],
)
def test_a_claim_of_two_is_kept_by_an_interval_above_1_9(ratio: float, ci95: Interval | None, verdict: str) -> None:
    """A claim of 2.0x within 5%: an interval wholly from 1.9x up keeps it, wholly below refutes it."""
    found = judge(parse_claim("2.0x", "output_tokens_per_s"), [row("output_tokens_per_s", ratio, ci95)])
    assert (found.verdict, found.speedup) == (verdict, ratio)


def test_a_latency_that_falls_is_a_speed_up() -> None:
    """TPOT at 0.4 (0.38 to 0.42) of what it was is a speed-up of 2.5x (2.38x to 2.63x)."""
    found = judge(parse_claim("2x", "tpot_p50"), [row("tpot_p50", 0.4, (0.38, 0.42))])
    assert found.speedup == pytest.approx(2.5)
    assert found.ci95 == pytest.approx((1 / 0.42, 1 / 0.38))
    assert found.verdict == "reproduced"


@pytest.mark.parametrize("text", ["2.0 times", "x", "", "-1x", "0x", "1e9x", "1.2.3x", "nan"])
def test_what_is_no_claim_is_refused(text: str) -> None:
    """Anything that is not a positive factor is one clear line."""
    with pytest.raises(InputError, match="claim"):
        parse_claim(text, "output_tokens_per_s")


def test_unknown_metrics_and_tolerances_are_refused() -> None:
    """A metric that is not kept, one that the runs lack, and a tolerance of 100% are refused."""
    with pytest.raises(InputError, match="output_tokens_per_s"):
        parse_claim("2x", "output_token_per_s")
    with pytest.raises(InputError, match="tolerance"):
        parse_claim("2x", "tpot_p50", 1.0)
    with pytest.raises(InputError, match="do not both have"):
        judge(parse_claim("2x", "tpot_p50"), [])
