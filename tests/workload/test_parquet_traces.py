"""Traces in Parquet say what the same traces say in CSV and JSONL; damaged ones end in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from servewise.errors import InputError
from servewise.workload.load import presets
from servewise.workload.traces import load
from servewise.workload.traces.load import load_trace
from servewise.workload.traces.trace import Trace

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def written(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    """A Parquet file of those columns, by another writer than ours, in small row groups."""
    parquet.write_table(pyarrow.table(dict(columns)), path, row_group_size=7)
    return path


def test_a_file_that_was_cut_off_is_said_to_be_damaged(tmp_path: Path) -> None:
    """A Parquet file without its end is refused as such, not as a text in some other encoding."""
    path = written(tmp_path / "t.parquet", {"arrived_at": [0.0, 1.0], "num_prefill_tokens": [5, 6]})
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(InputError, match="Parquet"):
        load_trace(path)


def _requests(trace: Trace) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in trace.requests(0)]


def test_azures_columns_with_dates_as_text_and_as_times(tmp_path: Path) -> None:
    """The same rows as CSV with its dates as text, and with timestamps of microseconds: the same requests."""
    times = ["2023-11-16 18:17:03.979960", "2023-11-16 18:17:04.031960", "2023-11-16 18:17:04.078149"]
    rows: dict[str, Sequence[Any]] = {"ContextTokens": [374, 396, 879], "GeneratedTokens": [44, 109, 55]}
    lines = [",".join(map(str, row)) for row in zip(times, *rows.values(), strict=True)]
    csv = tmp_path / "trace.csv"
    csv.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines]))
    as_text = load_trace(written(tmp_path / "text.parquet", {"TIMESTAMP": times} | rows))
    stamps = [datetime.fromisoformat(each) for each in times]
    as_times = load_trace(written(tmp_path / "times.parquet", {"TIMESTAMP": stamps} | rows))

    assert as_text.layout == "azure"
    assert _requests(as_text) == _requests(load_trace(csv))
    found = [each.arrival_s for each in as_times.requests(0)]
    assert found == pytest.approx([0.0, 0.052, 0.098189], abs=1e-7)


def test_mooncakes_blocks(tmp_path: Path) -> None:
    """Lists of block ids in Parquet are those of the JSONL, and so is a limit on rows."""
    rows = [
        {"timestamp": 27 * at, "input_length": 1_100, "output_length": 5 + at, "hash_ids": [0, 40 + at % 2, 90 + at]}
        for at in range(20)
    ]
    jsonl = tmp_path / "trace.jsonl"
    jsonl.write_text("\n".join(json.dumps(each) for each in rows))
    table = written(tmp_path / "trace.parquet", {name: [each[name] for each in rows] for name in rows[0]})
    assert load_trace(table).hash_block_tokens == 512
    assert _requests(load_trace(table)) == _requests(load_trace(jsonl))
    assert _requests(load_trace(table, limit=9)) == _requests(load_trace(jsonl, limit=9))


def test_failed_requests_are_left_out_and_counted(tmp_path: Path) -> None:
    """BurstGPT's rows without answer tokens are no requests; the caveat says how many."""
    table = written(
        tmp_path / "burst.parquet",
        {"Timestamp": [5.0, 6.0, 8.0], "Request tokens": [10, 20, 30], "Response tokens": [4, 0, 6]},
    )
    trace = load_trace(table)
    assert [(each.arrival_s, each.output_tokens) for each in trace.requests(0)] == [(0.0, 4), (3.0, 6)]
    assert trace.caveats[0].message.startswith("1 of 3 rows")


GENERIC: dict[str, list[Any]] = {"arrival_s": [0.0, 1.0], "prompt_tokens": [10, 20], "output_tokens": [1, 2]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arrival_s": [1.0, 0.5]}, "2: the trace is out of order"),
        ({"arrival_s": [0.0, float("nan")]}, "2: an arrival at nan s is no time"),
        ({"arrival_s": [0.0, None]}, "2: the row lacks arrival_s"),
        ({"arrival_s": ["now", "then"]}, "1: arrival_s is no time"),
        ({"prompt_tokens": [10, 2.5]}, "2: prompt_tokens must be a whole number from 1"),
        ({"prompt_tokens": ["many", "few"]}, "prompt_tokens must be whole numbers"),
        ({"output_tokens": [0, 2]}, "1: output_tokens must be a whole number from 1"),
        ({"block_hashes": [[1], [1, 2, 3]]}, "2: 3 blocks of 16 tokens for a prompt of 20"),
        ({"block_hashes": [[1], [2, 2]]}, "2: block_hashes names one block twice"),
        ({"block_hashes": [["a"], ["b"]]}, "1: block_hashes must be lists of whole numbers"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_row(tmp_path: Path, change: dict[str, list[Any]], words: str) -> None:
    """Each mistake is an InputError that names file and row."""
    with pytest.raises(InputError) as caught:
        load_trace(written(tmp_path / "trace.parquet", GENERIC | change))
    assert words in str(caught.value)


def test_sorted_if_asked(tmp_path: Path) -> None:
    """Rows out of order are put in order, and it is said."""
    trace = load_trace(written(tmp_path / "trace.parquet", GENERIC | {"arrival_s": [3.0, 1.0]}), sort=True)
    assert [(each.arrival_s, each.prompt_tokens) for each in trace.requests(0)] == [(0.0, 20), (2.0, 10)]
    assert [each.code for each in trace.caveats] == ["trace-sorted"]


@pytest.mark.parametrize("cut", ["middle", "footer", "length"])
def test_a_damaged_file_is_refused_and_nothing_aborts(tmp_path: Path, cut: str) -> None:
    """Bytes turned in a page, in the footer, or in its length: one line, and this process lives."""
    path = written(tmp_path / "trace.parquet", GENERIC)
    data = bytearray(path.read_bytes())
    at = {"middle": 8, "footer": len(data) - 60, "length": len(data) - 8}[cut]
    data[at : at + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged or truncated Parquet"):
        load_trace(path)


def test_a_long_trace_is_on_disk_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept on disk from 1,000 rows on: the requests, at any rate, repeated or not, the means and the title."""
    azure, mooncake = (presets()[name] for name in ("azure-code", "mooncake-conv"))
    held = [load_trace(path, limit=3_500) for path in (azure, mooncake)]
    monkeypatch.setattr(load, "HELD_ROWS", 1_000)
    for kept, path in zip(held, (azure, mooncake), strict=True):
        disk = load_trace(path, limit=3_500)
        assert (disk.title, disk.mean_prompt_tokens, disk.mean_output_tokens) == (
            kept.title,
            kept.mean_prompt_tokens,
            kept.mean_output_tokens,
        )
        assert [each[:4] for each in disk.at_rate(7.0).tiled(8_000).requests(0)] == [
            each[:4] for each in kept.at_rate(7.0).tiled(8_000).requests(0)
        ]
        assert disk.tiled(8_000).title == kept.tiled(8_000).title


def test_blocks_of_a_long_trace_meet_where_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a block is called on disk: equal blocks have one name, others another, in every repetition."""
    path = presets()["mooncake-conv"]
    kept = load_trace(path, limit=1_500).tiled(4_000)
    monkeypatch.setattr(load, "HELD_ROWS", 700)
    disk = load_trace(path, limit=1_500).tiled(4_000)
    names: dict[int, int] = {}
    for one, other in zip(kept.requests(0), disk.requests(0), strict=True):
        assert len(one.block_hashes) == len(other.block_hashes)
        for mine, its in zip(one.block_hashes, other.block_hashes, strict=True):
            assert names.setdefault(mine, its) == its
    assert len(set(names.values())) == len(names)
