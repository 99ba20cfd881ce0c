"""Lengths and arrivals in one word."""

from __future__ import annotations

import pytest

from servewise.errors import InputError
from servewise.workload.arrivals import Arrivals, Constant, Gamma, Poisson, Ramp
from servewise.workload.lengths import Empirical, Fixed, Lengths, Lognormal, Uniform
from servewise.workload.notation import written_arrivals, written_lengths


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("512", Fixed(512)),
        (" 512 ", Fixed(512)),
        ("128-1024", Uniform(128, 1024)),
        ("lognormal:608,1.2", Lognormal(608, 1.2)),
        ("lognormal:608,sigma=1.2,cap=4096", Lognormal(608, 1.2, 4096)),
        ("lognormal:608,mean=968", Lognormal.from_mean(608, 968)),
        ("lognormal:608,p95=2500,cap=9000", Lognormal.from_percentile(608, 2500, cap=9000)),
        ("values:5,7", Empirical([5, 7])),
    ],
)
def test_lengths_as_they_are_written(text: str, means: Lengths) -> None:
    """Every form gives the distribution that the workload file would."""
    assert written_lengths(text) == means


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-5",
        "5-",
        "9-3",
        "1.5",
        "512k",
        "lognormal",
        "lognormal:",
        "lognormal:608",
        "lognormal:608,1.2,3",
        "lognormal:608,sigma=1,mean=900",
        "lognormal:608,sd=1",
        "lognormal:nan,1",
        "lognormal:608,1,cap=2.5",
        "values:",
        "values:1,,2",
        "normal:5,1",
        "9" * 5000,
    ],
)
def test_other_lengths_are_one_line(text: str) -> None:
    """Whatever is written, no traceback but an InputError that says where."""
    with pytest.raises(InputError, match="--input-tokens"):
        written_lengths(text, where="--input-tokens")


@pytest.mark.parametrize(
    ("text", "rate_per_s", "means"),
    [
        ("poisson", 2.0, Poisson(2.0)),
        ("constant", 2.0, Constant(2.0)),
        ("gamma:3", 2.0, Gamma(2.0, 3.0)),
        ("ramp:1-5,60", None, Ramp(1.0, 5.0, 60.0)),
        ("ramp:1-5,60", 6.0, Ramp(2.0, 10.0, 30.0)),
    ],
)
def test_arrivals_as_they_are_written(text: str, rate_per_s: float | None, means: Arrivals) -> None:
    """A ramp has its own rates, which a given mean rate scales."""
    assert written_arrivals(text, rate_per_s) == means


@pytest.mark.parametrize(
    ("text", "rate_per_s"),
    [
        ("", 1.0),
        ("poisson", None),
        ("poisson:2", 1.0),
        ("gamma", 1.0),
        ("gamma:", 1.0),
        ("gamma:x", 1.0),
        ("gamma:0", 1.0),
        ("ramp", None),
        ("ramp:1,60", None),
        ("ramp:1-0,60", None),
        ("bursty", 1.0),
        ("poisson", 0.0),
    ],
)
def test_other_arrivals_are_one_line(text: str, rate_per_s: float | None) -> None:
    """Unknown names, missing numbers and rates of nothing."""
    with pytest.raises(InputError):
        written_arrivals(text, rate_per_s, where="--arrivals")
