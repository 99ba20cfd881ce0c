"""Journals: what was appended comes back, whatever moment the run was killed at; strangers are refused."""

from __future__ import annotations

import json
import time
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

    assert_equal(read_journal(path).requests, rows)


def test_cut_at_any_byte_the_whole_lines_before_it_are_read(tmp_path: Path) -> None:
    """A kill or a full disk may leave any prefix: exactly the lines with an end are rows, none is damage."""
    path = tmp_path / "j"
    written(path, made.measured())
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        found = read_journal(path)

        assert list(found.requests.id) == list(range(whole[:size].count(b"\n")))
        assert (found.damaged, found.lost) == ((), 0)
        assert found.torn == (size > 0 and whole[size - 1 : size] != b"\n")


def test_any_bit_that_is_flipped_is_found_and_named(tmp_path: Path) -> None:
    """Each bit of three lines in turn: no row is ever read that was not written, and a line not the last is named.

    Only the end of the last line is not told from one that was being written.
    """
    path = tmp_path / "j"
    written(path, made.measured())
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    truth = [as_line(made.measured(), row) for row in range(3)]
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        found = read_journal(path)
        hit = next(number for number in range(3) if place < sum(map(len, lines[: number + 1])))

        back = [as_line(found.requests, row) for row in range(len(found.requests))]
        assert all(row in truth for row in back)
        assert truth[hit] not in back
        assert len(back) >= (1 if whole[place : place + 1] == b"\n" and hit < 2 else 2)
        if place < len(whole) - 1:
            assert hit + 1 in found.damaged


def test_lines_that_are_missing_doubled_or_moved_are_told(tmp_path: Path) -> None:
    """Each line carries its place: a lost one is counted, one that comes again is no row."""
    path = tmp_path / "j"
    written(path, made.measured())
    first, second, third = path.read_bytes().splitlines(keepends=True)

    for lines, ids, damaged, lost in (
        ((first, third), [0, 2], (), 1),
        ((first, second, second, third), [0, 1, 2], (3,), 0),
        ((second, first, third), [1, 2], (2,), 1),
    ):
        path.write_bytes(b"".join(lines))
        found = read_journal(path)
        assert (list(found.requests.id), found.damaged, found.lost) == (ids, damaged, lost)


def test_a_row_that_could_not_be_written_leaves_none_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes half a line and is full; once there is room again, the next row stands in its place."""
    path, rows = tmp_path / "j", made.measured()
    with Journal(path) as journal:
        journal.append(rows, 0)
        real = journal._file.write

        def half(line: memoryview) -> int:
            real(line[: len(line) // 2])
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(journal, "_write", half)
            with pytest.raises(OSError, match="No space"):
                journal.append(rows, 1)
        journal.append(rows, 2)
    found = read_journal(path)

    assert list(found.requests.id) == [0, 2]
    assert (found.damaged, found.torn, found.lost) == ((), False, 0)


def test_a_flush_that_fails_is_told_by_the_next_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that breaks behind the operating system's back ends the run, and what it has is still read."""

    def broken(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("servewise.records.journal.SYNC_S", 0.001)
    monkeypatch.setattr("os.fsync", broken)
    with Journal(tmp_path / "j") as journal:
        journal.append(made.measured(), 0)
        while journal._flusher._error is None:
            time.sleep(0.001)
        with pytest.raises(OSError, match="Input/output"):
            journal.append(made.measured(), 1)

    assert list(read_journal(tmp_path / "j").requests.id) == [0]


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
