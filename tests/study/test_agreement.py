"""The rules by which a figure agrees: each must be able to say no."""

from __future__ import annotations

import pytest

from servewise.study import agreement
from servewise.study.agreement import last_place, rounds_to, value


@pytest.mark.parametrize(
    ("printed", "number", "place"),
    [("1,029", 1029, 1), ("0.42", 0.42, 0.01), ("4e-15", 4e-15, 1e-15), ("0.00007", 7e-5, 1e-5), ("1.0", 1, 0.1)],
)
def test_printed_figures_are_read(printed: str, number: float, place: float) -> None:
    """A printed figure gives its value and its last place."""
    assert value(printed) == pytest.approx(number)
    assert last_place(printed) == pytest.approx(place)


@pytest.mark.parametrize(("ours", "agrees"), [(13.75, True), (13.8499, True), (13.86, False), (13.74, False)])
def test_rounding_is_half_a_unit_of_the_last_place(ours: float, agrees: bool) -> None:
    """13.8 stands for 13.75 to 13.85."""
    assert rounds_to("13.8", ours) is agrees


def test_each_rule_can_refuse() -> None:
    """Every rule has a figure that it calls a disagreement."""
    case = {"a": 1}
    assert not agreement.exact(case, "q", "290", 291).agrees
    assert not agreement.rounded(case, "q", "0.42", 0.426).agrees
    assert not agreement.at_most(case, "q", "4e-15", 1e-12, 1e-13).agrees
    assert not agreement.within_factor(case, "q", "0.1", 1.6, 10).agrees
    assert not agreement.within_factor(case, "q", "0.1", 0.004, 10).agrees
    assert not agreement.within_interval(case, "q", "58", 65, (60, 70), "t").agrees
    assert not agreement.holds(case, "q", False).agrees
    assert agreement.shown(case, "q", "1", 2, "why").agrees is None


def test_an_interval_counts_the_studys_rounding() -> None:
    """A printed 58 may have been 58.49: an interval that starts there still holds it."""
    assert agreement.within_interval({}, "q", "58", 60, (58.49, 62), "t").agrees
