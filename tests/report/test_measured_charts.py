"""Charts of measured runs and of comparisons: where their marks stand, and what a spoiled document does to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.documents import answer, document
from tests.report.test_charts import polylines

from servewise.report import render_html
from servewise.report.charts import palette
from servewise.report.charts.forest import Ratio, forest_chart
from servewise.report.charts.gaps import Curve, gaps_chart
from servewise.report.charts.load import LoadLine, LoadPoint, Tradeoff, load_chart, tradeoff_chart
from servewise.report.charts.timeline import Series, timeline_chart
from servewise.report.document import answer_from
from servewise.report.figures import figures_of
from servewise.report.tables import tables_of


def test_streams_that_double_are_equally_far_apart() -> None:
    """1, 2, 4 and 8 streams stand at even distances, and the interval's bar spans what it says."""
    points = [LoadPoint(load, 0.1, (0.05, 0.15)) for load in (1, 2, 4, 8)]
    lines = polylines(load_chart("TTFT p50", [LoadLine("", tuple(points))], unit="Streams"), palette.SERIES[0])
    xs = [x for x, _ in max(lines, key=len)]
    assert xs[2] - xs[1] == pytest.approx(xs[1] - xs[0], rel=0.01)
    assert xs[3] - xs[2] == pytest.approx(xs[1] - xs[0], rel=0.01)
    bars = [line for line in lines if len(line) == 2 and line[0][0] == line[1][0]]
    middle = max(lines, key=len)[0][1]
    assert len(bars) == 4
    assert abs(bars[0][0][1] - middle) == pytest.approx(abs(bars[0][1][1] - middle), rel=0.01)


def test_twice_and_half_are_as_far_from_one() -> None:
    """The ratio's axis is logarithmic: intervals 2 to 2.2 and 1/2.2 to 1/2 mirror each other about the line of 1."""
    ratios = [
        Ratio("TTFT p50", 2.1, (2.0, 2.2), "worse"),
        Ratio("TPOT p50", 1 / 2.1, (1 / 2.2, 1 / 2.0), "better"),
    ]
    svg = forest_chart(ratios, "B over A")
    ((worse, _), (worst, _)) = max(polylines(svg, palette.BAD), key=len)[:2]
    ((best, _), (better, _)) = max(polylines(svg, palette.GOOD), key=len)[:2]
    one = next(
        x for line in polylines(svg, palette.INK) for x, _ in line if len(line) == 2 and line[0][0] == line[1][0]
    )
    assert worse - one == pytest.approx(one - better, rel=0.01)
    assert worst - one == pytest.approx(one - best, rel=0.01)


def test_more_throughput_is_further_right() -> None:
    """Twice the tokens/s at the same latency stands twice as far from the axis, at the same height."""
    points = [Tradeoff(100.0, 0.05, "1"), Tradeoff(200.0, 0.05, "8"), Tradeoff(300.0, 0.05, "16")]
    line = max(polylines(tradeoff_chart("TPOT p50", [("", points)]), palette.SERIES[0]), key=len)
    (x1, y1), (x2, y2), (x3, _) = line[:3]
    assert x3 - x2 == pytest.approx(x2 - x1, rel=0.01)
    assert y1 == pytest.approx(y2)


def test_each_load_has_its_curve_of_gaps() -> None:
    """Two loads, each named, and what a screen reader says: half of the gaps above the median."""
    shares = (0.0, 0.5, 0.99, 1.0)
    svg = gaps_chart(
        [Curve("1 stream", (0.01, 0.02, 0.05, 0.1), shares), Curve("8 streams", (0.02, 0.04, 0.1, 0.2), shares)]
    )
    assert "1 stream: half above 20.0 ms, 1% above 50.0 ms" in svg
    assert ">8 streams<" in svg


def test_the_servers_own_numbers_lie_over_the_clients() -> None:
    """Running requests and KV use are drawn and named beside the client's open requests, with their most."""
    times = (0.0, 1.0, 2.0)
    tokens = Series("tokens/s", times, (10.0, 20.0, 10.0))
    told = [Series("running", times, (1.0, 4.0, 2.0)), Series("KV use", times, (0.1, 0.5, 0.2), share=True)]
    svg = timeline_chart(tokens, told, (0.5, 1.5), "4 streams")
    assert "running (≤ 4)" in svg
    assert "KV use (≤ 50%)" in svg
    assert "Steady from 500 ms to 1.50 s" in svg


def test_every_figure_of_bench_and_compare_has_its_table() -> None:
    """Latency, throughput, trade-off, gaps, timelines; ratios: each links to a table that is on the page."""
    for name, least in (("bench", 11), ("compare", 2)):
        found = answer(name)
        titles = {table.title for table in tables_of(name, found.result)}
        drawn = figures_of(found)
        assert len(drawn) >= least
        assert {figure.table.title for figure in drawn} <= titles


ODD: tuple[Any, ...] = (None, "text", -1, float("1e300"), True, [], {}, [None], [-1, 2], [2, 1], {"values": 1})


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_spoiled_documents_are_drawn_or_left_out(data: st.DataObject) -> None:
    """Whatever stands in place of a value of bench or compare, its figures are made without it, never with an error."""
    whole = document(data.draw(st.sampled_from(["bench", "compare"])))
    place: Any = whole["result"]
    for _ in range(data.draw(st.integers(0, 5))):
        inner = [each for _, each in _items(place) if isinstance(each, (dict, list)) and each]
        if not inner:
            break
        place = data.draw(st.sampled_from(inner))
    place[data.draw(st.sampled_from([key for key, _ in _items(place)]))] = data.draw(st.sampled_from(ODD))
    found = answer_from(whole)
    assert [figure.title for figure in figures_of(found) if not figure.svg.startswith("<svg")] == []
    assert tables_of(found.command, found.result) is not None


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def test_the_page_of_a_bench_holds_its_parts() -> None:
    """The report of a measurement shows the gaps, the run over time and how requests ended."""
    page = render_html(answer("bench"), title="x")
    for words in ("Distribution of inter-token latency", "The run over time, 16 streams", "How requests ended"):
        assert words in page
