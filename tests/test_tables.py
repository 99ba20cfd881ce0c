"""TOML tables: read whole, checked key by key, every mistake one clear line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servewise.errors import InputError, UnknownName
from servewise.tables import Unit, as_list, as_number, as_table, as_text, needs, only, read_toml, shown

METRES = Unit("m", 0.1, 100, "a door is 2.0")


def test_reads_what_tomllib_reads(tmp_path: Path) -> None:
    """A well-formed file gives the tables that the standard parser gives, a byte-order mark or not."""
    text = 'a = 1\n[b]\nc = ["x", 2.5]\n'
    path = tmp_path / "a.toml"
    for head in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(head + text.encode())
        assert read_toml(path) == tomllib.loads(text)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=60))
def test_any_bytes_are_tables_or_refused(tmp_path: Path, data: bytes) -> None:
    """Whatever a file holds, reading it gives a dict or an InputError that names it."""
    path = tmp_path / "a.toml"
    path.write_bytes(data)
    try:
        told = read_toml(path)
    except InputError as error:
        told = {"refused": str(error)}
    assert str(path) in told.get("refused", str(path))


@pytest.mark.parametrize("value", [0.1, 1, 99.9, 100])
def test_numbers_within_range_pass(value: float) -> None:
    """A number in the unit's range comes back as a float."""
    assert as_number(value, METRES, "here") == float(value)


@pytest.mark.parametrize(
    "value",
    [0, -1, 101, float("nan"), float("inf"), pytest.param(-(10**5000), id="huge"), True, "2", None, [], {}],
)
def test_everything_else_is_refused_in_a_line(value: Any) -> None:
    """Numbers out of range, without a value, too long to print, and what is no number: one line with place and cure."""
    with pytest.raises(InputError) as caught:
        as_number(value, METRES, "file: door")
    assert str(caught.value).startswith("file: door: ")
    assert "a door is 2.0" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_unknown_and_missing_keys() -> None:
    """A key that is not allowed is refused with the nearest; missing ones are named."""
    with pytest.raises(UnknownName, match="did you mean bandwidth"):
        only({"bandwith": 1}, ("bandwidth", "memory"), "file")
    with pytest.raises(InputError, match="lacks b, c"):
        needs({"a": 1}, ("a", "b", "c"), "file")


@pytest.mark.parametrize(
    ("read", "wrong", "told"), [(as_table, 3, "table"), (as_list, {}, "list"), (as_text, 2.5, "text")]
)
def test_wrong_kinds(read: Any, wrong: Any, told: str) -> None:
    """A value of another kind is refused by what was wanted."""
    with pytest.raises(InputError, match=f"must be a? ?{told}"):
        read(wrong, "file")


def test_shown_is_short() -> None:
    """Long values are cut, endless ones named."""
    assert shown("x" * 100).endswith("...")
    assert len(shown(list(range(100)))) == 40
    assert shown(10**6000) == "something too long to print"
