"""Prometheus' text format: what its specification allows is read, anything else is one clear error."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.measure.scrape.exposition import MAX_BYTES, samples

# The example of prometheus.io/docs/instrumenting/exposition_formats ("Text format example"), CC BY 4.0, shortened.
SPECIFICATION = rb"""# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"}    3 1395066363000

# Escaping in label values:
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9

# Minimalistic line:
metric_without_timestamp_and_labels 12.47

# A weird metric from before the epoch:
something_weird{problem="division by zero"} +Inf -3982045

rpc_duration_seconds{quantile="0.01"} 3102
rpc_duration_seconds_sum 1.7560473e+07
"""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("http_requests_total", [1027, 3]),
        ("msdos_file_access_time_seconds", [1.458255915e9]),
        ("metric_without_timestamp_and_labels", [12.47]),
        ("something_weird", [math.inf]),
        ("rpc_duration_seconds", [3102]),
        ("rpc_duration_seconds_sum", [1.7560473e07]),
        ("rpc_duration", []),
    ],
)
def test_the_specifications_own_example_is_read(name: str, values: list[float]) -> None:
    """Labels, escapes, timestamps, infinities, and a name that is only the beginning of another."""
    assert [each.value for each in samples(SPECIFICATION, {name})] == values


@pytest.mark.parametrize(
    "line",
    [
        "up one",
        "up 1 2 3",
        "up{a=b} 1",
        'up{a="b} 1',
        'up{a="b"} ',
        'up{a="b"',
        "up 0x10",
        "up 1_000",
        "up 1,5",
        'up{9="b"} 1',
        'up{a="b" c="d"} 1',
        "up 1 1.5",
    ],
)
def test_a_wanted_line_of_another_form_is_refused_with_its_place(line: str) -> None:
    """Python's float would take some of these, Prometheus none: the error names the line."""
    with pytest.raises(InputError, match="line 2"):
        samples(f"down 1\n{line}\n".encode(), {"up"})


@pytest.mark.parametrize("line", ['up{a="b",} 1', "up\t1", " up  { } 1", "up NaN", "up -Inf", "up .5e1"])
def test_odd_but_legal_lines_are_read(line: str) -> None:
    """A trailing comma, tabs, blanks and Go's spellings of numbers are in the format."""
    assert len(samples(line.encode(), {"up"})) == 1


@pytest.mark.parametrize("page", [b"\xff\xfeup 1", b"x" * (MAX_BYTES + 1)])
def test_a_page_that_is_no_text_or_endless_is_refused(page: bytes) -> None:
    """A binary or endless answer is an InputError, no UnicodeDecodeError and no memory gone."""
    with pytest.raises(InputError):
        samples(page, {"up"})


@given(st.binary(max_size=200))
def test_no_page_raises_anything_else(page: bytes) -> None:
    """Whatever bytes a server sends, the answer is samples or an InputError."""
    with suppress(InputError):
        found = samples(b"up" + page, {"up"})

        assert all(each.name == "up" for each in found)
