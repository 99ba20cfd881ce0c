"""The reasons name what binds, with numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.made import candidate, weighed

from servewise.metrics.slo import parse_slo
from servewise.plan.binding import Binding
from servewise.plan.cost import cost_of
from servewise.plan.explain import binding_sentence, binds, losing_sentence, tightest, winning_sentence
from servewise.plan.ranking import measure

SLO = parse_slo("ttft_p95<=1s, tpot_p95<=600ms")
FOUND = weighed(candidate(), 2.0, saturation_per_s=4.0, slo_value_s=0.54)


def test_the_tightest_bound_is_nearest_to_its_limit() -> None:
    """0.54 s is 54% of the TTFT's limit and 90% of the TPOT's."""
    bound, share = tightest(FOUND, SLO)

    assert bound.metric == "tpot"
    assert share == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("rate", "binding", "word"),
    [
        (2.0, Binding("bandwidth", 0.5, 0.9, 0.9, 8), "slo"),
        (3.9, Binding("bandwidth", 0.5, 0.0, 0.0, 8), "bandwidth"),
        (3.9, Binding("compute", 0.5, 0.1, 0.1, 8), "compute"),
        (3.9, Binding("compute", 1.0, 0.5, 0.0, 8), "memory"),
        (3.9, Binding("compute", 0.3, 0.0, 0.5, 8), "slots"),
        (3.9, Binding("compute", 0.3, 0.1, 0.1, 8, 0.5), "tokens"),
    ],
)
def test_what_binds(rate: float, binding: Binding, word: str) -> None:
    """Far below saturation it is the SLO; at saturation what requests wait for, or else what the steps are made of."""
    found = replace(FOUND, rate_per_s=rate, binding=binding)

    assert binds(found) == word
    assert "0.54 s" in binding_sentence(found, SLO) or "540 ms" in binding_sentence(found, SLO) or word != "slo"


def test_a_loser_says_by_how_much() -> None:
    """Twice the price for the same rate: twice the cost, both figures in the sentence."""
    by = measure(priced=True, rate_asked=False)
    costs = [
        cost_of(max_rate_per_s=2, mean_output_tokens=100, accelerators=1, usd_per_accelerator_hour=usd)
        for usd in (1.44, 2.88)
    ]

    assert "$2 per M output tokens" in winning_sentence(FOUND, costs[0], by, SLO)
    sentence = losing_sentence(FOUND, costs[1], FOUND, costs[0], by, SLO)
    assert "$4 per M output tokens" in sentence
    assert "2.00 times as much" in sentence
