"""Values as people read them, by hand."""

from __future__ import annotations

import pytest

from servewise.report import wording


@pytest.mark.parametrize(
    ("said", "value", "expected"),
    [
        (wording.seconds, 0.0138, "13.8 ms"),
        (wording.seconds, 2.41, "2.41 s"),
        (wording.seconds, 95e-6, "95.0 µs"),
        (wording.seconds, 0, "0 s"),
        (wording.seconds, 1e300, "1.00e+300 s"),
        (wording.size, 26e9, "24.21 GiB"),  # 26e9 / 2**30
        (wording.size, 819_200, "800.00 KiB"),
        (wording.size, 0, "0 B"),
        (wording.count, 13_520, "13,520"),
        (wording.count, 10**30, "1.00e+30"),
        (wording.percent, 0.408, "40.8%"),
        (wording.percent, 1, "100%"),
        (wording.dollars, 3000, "$3,000"),
        (wording.dollars, 0.31, "$0.310"),
        (wording.times, 2.25, "2.25×"),
        (wording.figure, 0.0391, "0.0391"),
        (wording.figure, -1234.5, "-1,234"),
        (wording.figure, 1e300, "1.00e+300"),
    ],
)
def test_values(said: object, value: float, expected: str) -> None:
    """Each value reads with its unit and three digits, also absurd ones, which stay short."""
    assert callable(said)
    assert said(value) == expected


@pytest.mark.parametrize(
    "said",
    [wording.seconds, wording.size, wording.count, wording.percent, wording.dollars, wording.times, wording.figure],
)
@pytest.mark.parametrize("value", [None, "x", float("nan"), float("inf"), [], True])
def test_the_unknown_is_a_dash(said: object, value: object) -> None:
    """What is no number is a dash, never "nan" or "None"."""
    assert callable(said)
    assert said(value) == "–"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("step_s", 0.0138, "13.8 ms"),
        ("output_tokens_per_s", 803.2, "803"),
        ("weight_bytes", 2**30, "1.00 GiB"),
        ("cost_usd", 12.5, "$12.50"),
        ("prompt_tokens", 4096, "4,096"),
    ],
)
def test_the_key_gives_the_unit(key: str, value: float, expected: str) -> None:
    """A key's ending names the unit its value is read in."""
    assert wording.by_key(key, value) == expected


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.05, "s", "50.0 ms"),
        (0.31, "usd", "$0.310"),
        (0.31, "usd_per_million_output_tokens", "$0.310 per M"),
        (11.2, "", "11.2"),
        (3, "cards", "3 cards"),
        ("TP2", "", "TP2"),
        (None, "s", "– s"),
    ],
)
def test_quantities(value: object, unit: str, expected: str) -> None:
    """A number of a recommendation reads in its unit; an unknown unit stands behind it."""
    assert wording.quantity(value, unit) == expected
