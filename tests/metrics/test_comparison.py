"""Two runs compared: ratios, their intervals, verdicts, gates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics import made

from servewise.errors import InputError
from servewise.metrics.comparison import Comparison, compare, parse_gates, ratio_interval
from servewise.metrics.sample import percentiles
from servewise.metrics.summary import RunSummary


def row(rows: tuple[Comparison, ...], metric: str) -> Comparison:
    """The row of ``metric``."""
    return next(each for each in rows if each.metric == metric)


def of(value: float, half: float) -> RunSummary:
    """A summary whose latencies are ``value`` within ``half``."""
    return made.summary(made.percentiles(value, half))


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ((1.0, 0.01), (1.5, 0.01), "worse"),
        ((1.5, 0.01), (1.0, 0.01), "better"),
        ((1.0, 0.001), (1.005, 0.001), "same"),
        ((1.0, 0.3), (1.1, 0.3), "unclear"),
    ],
)
def test_verdicts_on_latencies(a: tuple[float, float], b: tuple[float, float], verdict: str) -> None:
    """More latency beyond doubt is worse, less is better, within 2% is the same, within noise is unclear."""
    found = row(compare(of(*a), of(*b)), "ttft_p95")
    assert (found.metric, found.a, found.b, found.verdict) == ("ttft_p95", a[0], b[0], verdict)
    assert found.ratio == pytest.approx(b[0] / a[0])


def test_more_throughput_is_better() -> None:
    """For rates the direction turns round."""
    slow = replace(of(1.0, 0.1), ci95={"output_tokens_per_s": (195.0, 205.0)})
    fast = replace(of(1.0, 0.1), output_tokens_per_s=300.0, ci95={"output_tokens_per_s": (290.0, 310.0)})
    assert row(compare(slow, fast), "output_tokens_per_s").verdict == "better"
    assert row(compare(fast, slow), "output_tokens_per_s").verdict == "worse"
    assert row(compare(slow, of(1.0, 0.1)), "requests_per_s").verdict == "same"


def test_a_run_against_itself_is_the_same() -> None:
    """Every metric of a run is the same as its own, however wide its intervals."""
    run = of(1.0, 0.5)
    assert {each.verdict for each in compare(run, run)} == {"same"}


def test_metrics_that_a_run_lacks_are_left_out() -> None:
    """Goodput without an SLO in one run is no row."""
    rows = compare(made.summary(made.percentiles(1.0), goodput=1.0), made.summary(made.percentiles(1.0)))
    assert "goodput_per_s" not in {each.metric for each in rows}


def test_ratio_intervals_hold_the_true_ratio() -> None:
    """p95 of exponential latencies of mean 1 and 1.3, 1,500 requests each: 1.3 is held in at least 93 of 100 pairs."""
    rng, held, pairs = np.random.default_rng(2), 0, 300
    for _ in range(pairs):
        a, b = (percentiles(mean * rng.standard_exponential(1500)) for mean in (1.0, 1.3))
        found = ratio_interval(a.p95, a.ci95["p95"], b.p95, b.ci95["p95"])
        assert found is not None
        held += found[0] <= 1.3 <= found[1]
    assert held >= 0.93 * pairs


def test_ratio_intervals_of_odd_ends() -> None:
    """An end that is not positive leaves the ratio open on that side; a value that is not positive has none."""
    low, high = ratio_interval(1.0, (0.5, math.inf), 1.0, (0.9, 1.1)) or (math.nan, math.nan)
    assert low == 0.0
    assert high == pytest.approx(math.exp(math.hypot(math.log(1.1), math.log(2))))
    low, high = ratio_interval(1.0, (-0.5, 2.0), 1.0, (0.9, 1.1)) or (math.nan, math.nan)
    assert low == pytest.approx(math.exp(-math.hypot(math.log(1 / 0.9), math.log(2))))
    assert high == math.inf
    assert ratio_interval(0.0, (0.0, 1.0), 1.0, (0.9, 1.1)) is None


def test_gates_by_hand() -> None:
    """From 1 s to 1.2 s is +20%: beyond +10%, not beyond +25%; throughput from 2/s to 1.5/s is below -5%."""
    rows = compare(made.summary(made.percentiles(1.0, 0.01)), made.summary(made.percentiles(1.2, 0.01), rate=1.5))
    over, under, fewer = parse_gates("ttft_p95>+10%, ttft_p95 > 25%; requests_per_s<-5%")
    assert (over.fails(rows), under.fails(rows), fewer.fails(rows)) == (True, False, True)
    assert over.is_certain(rows)
    assert under.is_certain(rows)
    assert not fewer.is_certain(rows)
    assert str(over) == "ttft_p95 > +10%"


def test_a_gate_within_the_noise_is_not_certain() -> None:
    """From 1 +/- 0.2 to 1.12 +/- 0.2 fails +10% by its value, but not beyond doubt."""
    rows = compare(of(1.0, 0.2), of(1.12, 0.2))
    (gate,) = parse_gates("ttft_p95>+10%")
    assert gate.fails(rows)
    assert not gate.is_certain(rows)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "at least one"),
        ("ttft_p95", "cannot read"),
        ("ttft_p95>10", "cannot read"),
        ("ttft_p95>=10%", "cannot read"),
        ("ttft_p94>10%", "unknown metric 'ttft_p94'.*ttft_p95"),
        ("ttft_p95>1.2.3%", "cannot read"),
        ("ttft_p95<-300%", "cannot be"),
    ],
)
def test_gates_that_cannot_be_read(text: str, what: str) -> None:
    """Each is one line that shows how to write it."""
    with pytest.raises(InputError, match=what):
        parse_gates(text)


@given(st.text(max_size=40))
def test_any_text_is_gates_or_an_input_error(text: str) -> None:
    """No text is a traceback."""
    try:
        parse_gates(text)
    except InputError:
        return


def test_a_gate_on_what_the_runs_lack_is_refused() -> None:
    """A gate on goodput between runs without an SLO says so instead of passing."""
    rows = compare(made.summary(made.percentiles(1.0)), made.summary(made.percentiles(1.0)))
    with pytest.raises(InputError, match="goodput_per_s"):
        parse_gates("goodput_per_s<-5%")[0].fails(rows)
