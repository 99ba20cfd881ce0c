"""The page for Prometheus."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from servewise.engine.server.meters import Histogram, Meters


def test_buckets_are_cumulative_and_include_their_bound() -> None:
    """As Prometheus defines them: ``le`` counts what is at most the bound, +Inf counts all."""
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)

    assert list(histogram.lines("t", 'a="b"')) == [
        't_bucket{a="b",le="1.0"} 2',
        't_bucket{a="b",le="2.0"} 3',
        't_bucket{a="b",le="+Inf"} 4',
        't_sum{a="b"} 12.0',
        't_count{a="b"} 4',
    ]


def test_a_model_name_is_escaped() -> None:
    """Quotes, backslashes and line ends in a label's value are escaped, as the text format asks."""
    text = Meters('a"b\\c\nd', prefix_cache=False).text()

    assert 'model_name="a\\"b\\\\c\\nd"' in text
