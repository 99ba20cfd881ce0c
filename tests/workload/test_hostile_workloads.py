"""Fuzz: whatever bytes stand in a trace or workload file, the answer is requests or one InputError."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.workload.traces.load import load_trace
from servewise.workload.workload_file import read_workload

ODD = st.one_of(
    st.integers(-(10**40), 10**40), st.floats(), st.text(max_size=5), st.none(), st.booleans(), st.just([]), st.just({})
)
KEYS = (
    "arrival_s",
    "prompt_tokens",
    "output_tokens",
    "block_hashes",
    "prompt",
    "timestamp",
    "input_length",
    "hash_ids",
)
ROW = st.dictionaries(st.sampled_from(KEYS), ODD | st.lists(ODD, max_size=3))
CELL = st.one_of(
    st.integers(-5, 10**30).map(str),
    st.floats().map(str),
    st.text(max_size=6),
    st.sampled_from(["2023-11-16 18:17:03.97", '"', "", "\x00"]),
)
HEADERS = ("TIMESTAMP,ContextTokens,GeneratedTokens", "Timestamp,Model,Request tokens,Response tokens", "arrival_s,a,b")


Loaded = TypeVar("Loaded")


def attempt(load: Callable[[Path], Loaded], path: Path) -> tuple[Loaded | None, str]:
    """What ``load`` gives, or its refusal; any other exception is a failure of the test."""
    try:
        return load(path), ""
    except InputError as error:
        return None, str(error)


def outcome(content: bytes, *, suffix: str = "") -> None:
    """Load ``content`` as a trace; the requests must be valid, or the refusal one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        path.write_bytes(content)
        trace, refusal = attempt(load_trace, path)
        assert "\n" not in refusal
        if trace is None:
            return
        last = 0.0
        for request in trace.requests(0):
            assert request.arrival_s >= last
            assert request.prompt_tokens > 0
            assert request.output_tokens > 0
            last = request.arrival_s


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_bytes(content: bytes) -> None:
    """Random bytes are never more than an InputError."""
    outcome(content)


@given(st.lists(ROW, min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_any_json_rows(rows: list[dict[str, object]]) -> None:
    """JSON rows of any keys and values are read or refused."""
    outcome("\n".join(json.dumps(row) for row in rows).encode("utf-8", "surrogatepass"))


@given(st.sampled_from(HEADERS), st.lists(st.lists(CELL, max_size=5), max_size=4))
@settings(max_examples=200, deadline=None)
def test_any_csv_rows(header: str, rows: list[list[str]]) -> None:
    """CSV rows of any cells are read or refused."""
    outcome("\n".join([header, *(",".join(row) for row in rows)]).encode("utf-8", "surrogatepass"))


TOML = b"""requests = 9
[arrivals]
kind = "poisson"
rate_per_s = 2.0
[prompt_tokens]
kind = "lognormal"
median = 5
sigma = 1
[output_tokens]
kind = "fixed"
tokens = 1
"""


@given(st.integers(0, len(TOML) - 1), st.binary(max_size=4), st.integers(0, 30))
@settings(max_examples=200, deadline=None)
def test_any_damage_to_a_workload_file(at: int, inserted: bytes, cut: int) -> None:
    """A workload file with bytes replaced anywhere is a workload or an InputError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.toml"
        path.write_bytes(TOML[:at] + inserted + TOML[at + cut :])
        _, refusal = attempt(read_workload, path)
        assert refusal == "" or (refusal.startswith(str(path)) and "\n" not in refusal)
