"""Answers of one command side by side."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.answer import Answer
from servewise.ask.beside import beside
from servewise.conditions import Conditions
from servewise.report import print_answer, render_html, render_markdown

CONDITIONS = Conditions(hardware="h", load="l", lengths="t", precision="p")


def bench(tokens: float, ends: tuple[float, float], *, streams: int = 8) -> Answer:
    """A measured load with its throughput and interval."""
    row = {"concurrency": streams, "output_tokens_per_s": tokens, "ci95_output_tokens_per_s": list(ends)}
    return Answer("bench", CONDITIONS, {"rows": [row]})


def only_row(found: Answer | None) -> dict[str, Any]:
    """The row of an answer that has one."""
    assert found is not None
    (row,) = found.result["rows"]
    assert isinstance(row, dict)
    return row


def test_the_ratio_and_its_interval_by_hand() -> None:
    """200 (180 to 220) over 100 (90 to 110): MOVER's ends on a logarithmic scale, calculated here again."""
    row = only_row(beside({"a": bench(100, (90, 110)), "b": bench(200, (180, 220))}))
    below = math.hypot(math.log(200 / 180), math.log(110 / 100))
    above = math.hypot(math.log(220 / 200), math.log(100 / 90))

    assert row["values"] == [100, 200]
    assert row["ratios"] == [1.0, 2.0]
    assert row["ci95"][1] == pytest.approx([2 * math.exp(-below), 2 * math.exp(above)])
    assert row["at"] == "8 streams"


def test_loads_that_one_has_alone_are_left_out() -> None:
    """8 streams against 16: nothing in common, no answer."""
    assert beside({"a": bench(1, (1, 1)), "b": bench(2, (2, 2), streams=16)}) is None


def test_without_intervals_there_is_a_ratio_alone() -> None:
    """A size has no interval: twice the tokens is 2×, without one."""
    found = beside({name: Answer("size", CONDITIONS, {"kv_tokens": count}) for name, count in (("a", 10), ("b", 20))})

    assert only_row(found)["ratios"] == [1.0, 2.0]
    assert only_row(found)["ci95"] == [None, None]


def test_of_a_plan_the_winner_is_compared() -> None:
    """The first of each ranking, whatever the deployments are called."""
    plans = {
        name: Answer("plan", CONDITIONS, {"ranking": [{"max_rate_per_s": rate}, {"max_rate_per_s": 0.1}]})
        for name, rate in (("a", 4.0), ("b", 6.0))
    }

    assert only_row(beside(plans))["ratios"] == [1.0, 1.5]


def test_it_is_drawn_with_the_ratio_and_how_far_it_reaches() -> None:
    """exp(hypot(ln 1.1, ln 1/0.9)) is 1.153: the table reads 2.00× ±15%, and the page leads with what is compared."""
    found = beside({"a": bench(100, (90, 110)), "b": bench(200, (180, 220))})
    assert found is not None

    assert "2.00× ±15%" in render_markdown(found)
    assert "a and b side by side" in render_html(found, title="x")
    print_answer(found)


ODD = st.none() | st.floats() | st.text(max_size=2) | st.lists(st.floats(), max_size=3)
ROWS = st.dictionaries(
    st.sampled_from(["concurrency", "output_tokens_per_s", "ci95_output_tokens_per_s", "ttft_s"]), ODD, max_size=4
)


@given(st.dictionaries(st.sampled_from(["rows", "ranking", "kv_tokens"]), st.lists(ROWS, max_size=3)))
def test_whatever_a_document_holds(result: dict[str, Any]) -> None:
    """Wrong kinds are passed over."""
    for command in ("bench", "plan", "size"):
        beside({"a": Answer(command, CONDITIONS, result), "b": Answer(command, CONDITIONS, result)})
