"""Run directories: what is written is read, whole or not at all; damage and strangers are refused."""

from __future__ import annotations

import dataclasses
import json
import math
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records import made

from servewise.atomic import replace_whole
from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.records import run_directory
from servewise.records.columns import RequestColumns, StepColumns, TokenTimes
from servewise.records.run_directory import RunRecord, read_run, write_run


def same(a: array[float], b: array[float]) -> bool:
    """Equal bit for bit, NaN included."""
    return a.typecode == b.typecode and a.tobytes() == b.tobytes()


def assert_equal(a: RequestColumns | StepColumns, b: RequestColumns | StepColumns) -> None:
    """Every column is the same."""
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        assert same(x, y) if isinstance(x, array) else x == y, field.name


def test_a_simulated_run_comes_back_as_it_was(tmp_path: Path) -> None:
    """Requests, steps, conditions, seed, versions, command, caveats and details survive, NaN included."""
    run = dataclasses.replace(
        made.simulated_run(),
        versions={"servewise": "0.1.0"},
        caveats=(Caveat("near-saturation", "it grows", "lower the rate"),),
        details={"policy": {"name": "continuous", "slots": 8}},
    )
    write_run(tmp_path / "deep" / "run", run)
    back = read_run(tmp_path / "deep" / "run")
    assert_equal(back.requests, run.requests)
    assert back.steps is not None
    assert run.steps is not None
    assert_equal(back.steps, run.steps)
    for name in ("kind", "conditions", "slots", "seed", "versions", "command", "caveats", "details"):
        assert getattr(back, name) == getattr(run, name), name


def test_a_measured_run_keeps_token_times_and_errors(tmp_path: Path) -> None:
    """Without steps, with each token's time and the text of failures."""
    run = RunRecord(kind="measured", conditions=made.CONDITIONS, requests=made.measured())
    write_run(tmp_path / "run", run)
    back = read_run(tmp_path / "run")
    assert back.steps is None
    assert_equal(back.requests, run.requests)


def test_an_empty_run_is_a_run(tmp_path: Path) -> None:
    """No request, no step: still written and read."""
    run = RunRecord(kind="simulated", conditions=made.CONDITIONS, requests=RequestColumns(), steps=StepColumns())
    write_run(tmp_path / "run", run)
    assert len(read_run(tmp_path / "run").requests) == 0


COLUMN = {"d": st.floats(allow_nan=True), "q": st.integers(-(2**63), 2**63 - 1)}


@given(st.data(), st.integers(0, 6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_columns_survive(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, rows: int, timed: bool
) -> None:
    """Whatever numbers the columns hold, they come back bit for bit."""
    requests = RequestColumns()
    for field in dataclasses.fields(requests):
        column = getattr(requests, field.name)
        if isinstance(column, array):
            values = st.integers(0, 4) if field.name == "status" else COLUMN[column.typecode]
            column.extend(data.draw(st.lists(values, min_size=rows, max_size=rows)))
    if timed and rows:
        requests.token_times = TokenTimes()
        for _ in range(rows):
            requests.token_times.append(data.draw(st.lists(st.floats(0, 1e6), max_size=3)))
    requests.errors = data.draw(st.dictionaries(st.integers(0, rows - 1), st.text(max_size=4))) if rows else {}
    folder = tmp_path_factory.mktemp("any") / "run"
    write_run(folder, RunRecord(kind="measured", conditions=made.CONDITIONS, requests=requests))
    assert_equal(read_run(folder).requests, requests)


def test_parquet_is_read_by_another_reader(tmp_path: Path) -> None:
    """pyarrow finds CONTRACT's columns with their types, null lists and texts where there are none."""
    parquet = pytest.importorskip("pyarrow.parquet")
    write_run(tmp_path / "a", made.simulated_run())
    write_run(tmp_path / "b", RunRecord(kind="measured", conditions=made.CONDITIONS, requests=made.measured()))
    simulated = parquet.read_table(tmp_path / "a" / "requests.parquet")
    measured = parquet.read_table(tmp_path / "b" / "requests.parquet")
    assert simulated.schema.equals(measured.schema)
    contract = (
        "id scheduled_s sent_s first_token_s end_s prompt_tokens cached_tokens output_tokens token_times_s status error"
    )
    assert set(contract.split()) <= set(measured.column_names)
    rows = measured.to_pylist()
    assert rows[0]["token_times_s"] == [0.25, 0.5, 0.5, 1.0]
    assert [row["status"] for row in rows] == ["completed", "completed", "failed"]
    assert [row["error"] is None for row in rows] == [True, True, False]
    assert math.isnan(rows[2]["first_token_s"])
    assert simulated.column("token_times_s").null_count == 3
    assert parquet.read_table(tmp_path / "a" / "steps.parquet").column("steps").to_pylist() == [1, 3]


def test_an_occupied_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A directory with anything in it, or a file of that name, is refused; an empty directory is taken."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "empty").mkdir()
    for name in ("full", "file"):
        with pytest.raises(InputError, match="not empty"):
            write_run(tmp_path / name, made.simulated_run())
    write_run(tmp_path / "empty", made.simulated_run())
    assert (tmp_path / "full" / "mine").read_text() == (tmp_path / "file").read_text() == "kept"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "file", "full"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fails after the first file, neither the run nor a part of it is there."""

    def full(target: Path, content: bytes) -> None:
        if target.name == run_directory.STEPS:
            raise OSError(28, "No space left on device")
        replace_whole(target, content)

    monkeypatch.setattr("servewise.records.placing.replace_whole", full)
    with pytest.raises(InputError, match="No space left"):
        write_run(tmp_path / "run", made.simulated_run())
    assert list(tmp_path.iterdir()) == []


def test_details_that_json_cannot_hold_are_the_makers_mistake(tmp_path: Path) -> None:
    """NaN in details fails before anything is written."""
    with pytest.raises(ValueError):
        write_run(tmp_path / "run", dataclasses.replace(made.simulated_run(), details={"x": math.nan}))
    assert list(tmp_path.iterdir()) == []


def test_damaged_and_truncated_parquet_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """Any changed byte or lost tail of a Parquet file is one InputError that names the file."""
    folder = tmp_path / "run"
    write_run(folder, made.simulated_run())
    for name in ("requests.parquet", "steps.parquet"):
        good = (folder / name).read_bytes()
        for bad in (good[:-9], good[:3], b"", good[:50] + bytes([good[50] ^ 1]) + good[51:]):
            (folder / name).write_bytes(bad)
            with pytest.raises(InputError, match=f"{name}.*damaged"):
                read_run(folder)
        (folder / name).unlink()
        with pytest.raises(InputError, match=f"{name}.*cannot be read"):
            read_run(folder)
        (folder / name).write_bytes(good)
    read_run(folder)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"schema": "servewise.run/2"}, "servewise.run/2"),
        ({"schema": None}, "schema"),
        ({"files": {}}, "damaged"),
        ({"files": 3}, "files must be"),
        ({"conditions": {}}, "conditions lack hardware, load, lengths, precision"),
        ({"conditions": {**made.CONDITIONS.to_json(), "mood": "good"}}, "unknown condition 'mood'"),
        ({"conditions": {**made.CONDITIONS.to_json(), "seeds": ["x"]}}, "seeds"),
        ({"conditions": {**made.CONDITIONS.to_json(), "model": 7}}, "texts"),
        ({"seed": "seven"}, "seed"),
        ({"slots": True}, "slots"),
        ({"kind": 1}, "kind"),
        ({"caveats": [{"code": 1}]}, "caveat"),
        ({"versions": []}, "versions"),
    ],
)
def test_a_header_of_another_shape_is_refused(tmp_path: Path, change: dict[str, object], what: str) -> None:
    """Another schema version, and each misshapen entry, is one line that names run.json or the file."""
    folder = tmp_path / "run"
    write_run(folder, made.simulated_run())
    header = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(header | change))
    with pytest.raises(InputError, match=what) as caught:
        read_run(folder)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200) | st.just(b"[" * 100_000) | st.just(b"[]") | st.just(b"7"))
@settings(max_examples=60, deadline=None)
def test_any_bytes_as_header_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Whatever stands in run.json, it is an InputError and never a traceback."""
    folder = tmp_path_factory.mktemp("any")
    (folder / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=r"run\.json"):
        read_run(folder)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """An empty folder or a missing one says what a run directory holds."""
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=r"requests\.parquet"):
            read_run(folder)
