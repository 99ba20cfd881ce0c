"""Journals: what was appended comes back, whatever moment the run was killed at; strangers are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records import made
from tests.records.test_run_directory import assert_equal

from servewise.errors import InputError
from servewise.records.columns import RequestColumns, TokenTimes
from servewise.records.journal import Journal, as_line, read_journal

times = st.floats(min_value=0, max_value=1e9) | st.just(made.NAN)
counts = st.integers(0, 2**40)


@st.composite
def columns(draw: st.DrawFn) -> RequestColumns:
    """A few rows of any values that a measured run can have."""
    found = RequestColumns(token_times=TokenTimes())
    assert found.token_times is not None
    for row in range(draw(st.integers(0, 5))):
        for name in ("scheduled_s", "sent_s", "admitted_s", "first_token_s", "end_s"):
            getattr(found, name).append(draw(times))
        for name in ("id", "prompt_tokens", "cached_tokens", "output_tokens", "preemptions"):
            getattr(found, name).append(draw(counts))
        found.status.append(draw(st.integers(0, 4)))
        found.token_times.append(draw(st.lists(st.floats(0, 1e9), max_size=4)))
        if draw(st.booleans()):
            found.errors[row] = draw(st.text(max_size=40))
    return found


def written(path: Path, rows: RequestColumns) -> None:
    """A journal of all the rows."""
    path.unlink(missing_ok=True)
    with Journal(path) as journal:
        for row in range(len(rows)):
            journal.append(rows, row)


@settings(max_examples=60, deadline=None)
@given(rows=columns())
def test_a_journal_gives_back_every_row_exactly(rows: RequestColumns, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every column, NaN, token time and text of an error survives bit for bit."""
    path = tmp_path_factory.getbasetemp() / "journal.jsonl"
    written(path, rows)

    assert_equal(read_journal(path), rows)


def test_cut_at_any_byte_the_whole_lines_before_it_are_read(tmp_path: Path) -> None:
    """A kill or a full disk may leave any prefix of the file: exactly the lines with an end are rows."""
    path = tmp_path / "j"
    written(path, made.measured())
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])

        assert len(read_journal(path)) == whole[:size].count(b"\n")


@pytest.mark.parametrize(
    "change",
    [
        {"id": 1.5},
        {"id": True},
        {"id": 2**70},
        {"end_s": "soon"},
        {"end_s": 1e300},
        {"status": "fine"},
        {"status": ["completed"]},
        {"error": 7},
        {"token_times_s": "no"},
        {"token_times_s": [None]},
        {"extra": 1},
    ],
)
def test_a_line_that_is_no_request_is_refused_with_its_place(tmp_path: Path, change: dict[str, object]) -> None:
    """A hand-made or damaged line is one clear error that names file and line, never a wrong row."""
    path = tmp_path / "j"
    path.write_text(
        json.dumps(as_line(made.measured(), 0)) + "\n" + json.dumps(as_line(made.measured(), 1) | change) + "\n"
    )

    with pytest.raises(InputError, match=r"j:2: is no request of a run"):
        read_journal(path)


@pytest.mark.parametrize("line", [b"{\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"[]\n", b'{"id": NaN}\n'])
def test_a_file_that_is_no_journal_is_one_clear_error(tmp_path: Path, line: bytes) -> None:
    """No bare exception of the JSON parser reaches a user."""
    path = tmp_path / "j"
    path.write_bytes(line)

    with pytest.raises(InputError, match="j:1"):
        read_journal(path)


def test_a_journal_is_never_written_over(tmp_path: Path) -> None:
    """Two runs cannot share one: the second finds the file and fails."""
    with Journal(tmp_path / "j"), pytest.raises(FileExistsError):
        Journal(tmp_path / "j")
