"""Results as flat rows and columns."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.tabular import columns, flat, tables_in

PLAIN = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3)
NESTED = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


def test_percentiles_are_flat_and_keep_their_unit() -> None:
    """The unit stands before the percentile, an interval becomes its two ends, by the rule written down."""
    row = {"ttft_s": {"p50": 0.1, "p95": 0.3, "ci95_p95": [0.2, 0.4], "n": 9}, "ci95_goodput_per_s": [1.0, 2.0]}

    assert flat(row) == {
        "ttft_s_p50": 0.1,
        "ttft_s_p95": 0.3,
        "ttft_s_p95_low": 0.2,
        "ttft_s_p95_high": 0.4,
        "ttft_s_n": 9,
        "goodput_per_s_low": 1.0,
        "goodput_per_s_high": 2.0,
    }


def test_the_commands_own_table_stands_first() -> None:
    """``rows`` before others, what is nested last, each under its path."""
    result = {"knees": [{"a": 1}], "recommendation": {"numbers": [{"b": 2}]}, "rows": [{"c": 3}]}

    assert list(tables_in(result)) == ["rows", "knees", "recommendation.numbers"]


def test_a_result_without_rows_is_one_row() -> None:
    """``size`` alone gives a table of its values."""
    assert tables_in({"fits": True, "kv_tokens": 3}) == {"result": [{"fits": True, "kv_tokens": 3}]}


def test_a_column_has_one_kind() -> None:
    """Whole numbers beside floats are floats, a missing value is None, kinds that do not mix are text."""
    assert columns([{"a": 1, "b": 1}, {"a": 2.5, "b": "x"}, {}]) == {"a": [1.0, 2.5, None], "b": ["1", "x", None]}
    assert [type(each) for each in columns([{"a": 1}, {"a": 2.0}])["a"]] == [float, float]


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(max_size=4), NESTED, max_size=4))
def test_anything_becomes_plain_columns_of_one_length(result: dict[str, Any]) -> None:
    """Whatever a document holds, every cell is plain and every column has a cell for each row."""
    for rows in tables_in(result).values():
        found = columns(rows)

        assert {len(column) for column in found.values()} <= {len(rows)}
        assert not any(isinstance(cell, (list, dict)) for column in found.values() for cell in column)
