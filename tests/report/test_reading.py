"""Careful reading: whatever stands in a document, what comes out is a number, a clean text, or nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.report.reading import LONGEST_TEXT, clean, interval, number, plottable, rows, text


@pytest.mark.parametrize("value", [None, True, "3", [1], {}, math.nan, math.inf, -math.inf, 10**400])
def test_what_is_no_number(value: object) -> None:
    """Nothing but a finite number passes for one."""
    assert number(value) is None


@pytest.mark.parametrize("value", [0, -1.0, 1e-13, 1e16, math.inf])
def test_what_no_axis_holds(value: float) -> None:
    """Zero, negative and absurd values are kept from logarithmic axes."""
    assert plottable(value) is None


@given(st.text(st.characters(), max_size=60))
def test_clean_text_can_be_printed_and_encoded(value: str) -> None:
    """Clean text holds no control character, no surrogate, no direction override, and encodes as UTF-8."""
    found = clean(value)

    found.encode("utf-8")
    assert not any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 or 0x202A <= ord(each) <= 0x202E for each in found)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=60))
def test_clean_leaves_plain_text(value: str) -> None:
    """Letters, digits, signs and blanks of any script stay as they are."""
    assert clean(value) == value


def test_long_text_is_cut() -> None:
    """A text without end does not make a report without end."""
    assert len(clean("x" * 10_000)) == LONGEST_TEXT


def test_text_of_a_deployment_is_its_title() -> None:
    """A deployment reads as its title, and a list as nothing."""
    assert text({"title": "2 x L4"}) == "2 x L4"
    assert text([1, 2], "-") == "-"


@pytest.mark.parametrize("pair", [[1.0], [2.0, 1.0], ["a", "b"], None, [math.nan, 1.0]])
def test_what_is_no_interval(pair: object) -> None:
    """An interval has two finite ends in order."""
    assert interval({"ci95_p95": pair}, "p95") is None


def test_rows_pass_over_what_is_no_row() -> None:
    """A list's mappings are its rows, all else is passed over."""
    assert rows({"rows": [{"a": 1}, 3, None, "x"]}, "rows") == [{"a": 1}]
    assert rows({"rows": "no list"}, "rows") == []
