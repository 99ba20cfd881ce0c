"""Finished tasks are kept; a sweep that was broken off goes on from them."""

from __future__ import annotations

import io
import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.executing.tasks import broken_off, counted

from servewise.errors import InputError
from servewise.executing import build, kept
from servewise.executing.executor import Executor
from servewise.executing.kept import MISSING, Kept
from servewise.executing.workers import Workers


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A folder in which tasks leave marks."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def swept(marks: Path, keep: Path, tasks: int = 6, *, forget: bool = False) -> list[int]:
    """All of the sweep."""
    with Workers(marks, Executor(keep=keep, forget=forget)) as workers:
        return list(workers.each(broken_off, range(tasks)))


def times_done(marks: Path) -> int:
    """How often a task was done."""
    return sum("-" in each.name for each in marks.iterdir())


def test_what_was_broken_off_goes_on(marks: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After Ctrl-C in the fourth of six tasks, the same sweep does three more, and every result stands in its place."""
    with pytest.raises(KeyboardInterrupt):
        swept(marks, tmp_path)
    assert "3 of 6 tasks are kept in" in caplog.text
    assert "the same command goes on from there" in caplog.text
    (marks / "resumed").touch()

    assert swept(marks, tmp_path) == [0, 1, 4, 9, 16, 25]
    assert times_done(marks) == 6
    assert "3 of 6 tasks were done before" in caplog.text


def test_another_question_finds_nothing(marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results belong to what the tasks share, to the function, to the task and to what computes them."""

    def found(shared: object, function: Any, task: object) -> bool:
        with_kept = Kept(tmp_path, shared)
        try:
            return with_kept.find(function, task) is not MISSING
        finally:
            with_kept.close()

    keeping = Kept(tmp_path, 3)
    keeping.add(counted, 1, 1)
    keeping.close()

    assert found(3, counted, 1)
    assert not found(4, counted, 1)
    assert not found(3, broken_off, 1)
    assert not found(3, counted, 1.0)
    monkeypatch.setattr(kept, "this_build", lambda: {**build.this_build(), "NumPy": "0"})
    assert not found(3, counted, 1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: text.replace('"result":"9"', '"result":"8"'),
        lambda text: text + '{"task": 1}\n[]\nnull\n\x00\xff',
        lambda text: "\n".join(text.splitlines()[:1]) + "\n" + "[" * 100_000 + "\n",
        lambda _: "",
    ],
)
def test_damaged_lines_are_done_again(marks: Path, tmp_path: Path, damage: Any) -> None:
    """A torn last line, a changed result, strange lines, none: what is whole is used, the rest is computed."""
    (marks / "resumed").touch()
    swept(marks, tmp_path, 4)
    (path,) = tmp_path.glob("*.jsonl")
    path.write_bytes(damage(path.read_text()).encode("latin-1"))

    assert swept(marks, tmp_path, 5) == [0, 1, 4, 9, 16]
    assert swept(marks, tmp_path, 5) == [0, 1, 4, 9, 16]
    assert times_done(marks) <= 9


def test_a_full_disk_ends_keeping_and_not_the_sweep(
    marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where a line cannot be written, the results stand all the same and one line says that they are not kept."""
    (marks / "resumed").touch()
    whole = io.FileIO.write

    class Full(io.FileIO):
        def write(self, content: Any) -> int:
            return whole(self, content) if b"schema" in bytes(content) else 0

    monkeypatch.setattr(io, "FileIO", Full)

    assert swept(marks, tmp_path, 5) == [0, 1, 4, 9, 16]
    assert caplog.text.count("no more results are kept (No space left on device)") == 1


def test_a_folder_that_cannot_be_written_is_refused_before_work(marks: Path, tmp_path: Path) -> None:
    """A file in the folder's place is one line, and no task is done."""
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match="keep: cannot be written"):
        swept(marks, tmp_path / "file")
    assert times_done(marks) == 0


def test_what_nobody_asked_to_keep_is_taken_away(marks: Path, tmp_path: Path) -> None:
    """With ``forget`` an interrupted sweep leaves its file and one that ended well takes it away."""
    with pytest.raises(KeyboardInterrupt):
        swept(marks, tmp_path, forget=True)
    assert len(list(tmp_path.glob("*.jsonl"))) == 1
    (marks / "resumed").touch()
    swept(marks, tmp_path, forget=True)

    assert list(tmp_path.glob("*.jsonl")) == []
    assert times_done(marks) == 6


def test_a_line_is_json_that_others_can_read(marks: Path, tmp_path: Path) -> None:
    """The file begins with its schema and build; every line is a JSON object."""
    (marks / "resumed").touch()
    swept(marks, tmp_path, 3)
    (path,) = tmp_path.glob("*.jsonl")
    head, *rows = (json.loads(line) for line in path.read_text().splitlines())

    assert head["schema"] == "servewise.kept/1"
    assert set(head["build"]) == {"servewise", "Python", "NumPy", "machine"}
    assert [json.loads(row["result"]) for row in rows] == [0, 1, 4]


@pytest.mark.parametrize("plain", ['{"record":[]}', '{"tuple":[' * 5_000 + "]}" * 5_000, '{"enum":["servewise"]}'])
def test_a_result_of_no_known_form_is_done_again(tmp_path: Path, plain: str) -> None:
    """Whole by its checksum and yet not written by us: as if it were not there."""
    with_kept = Kept(tmp_path, "shared")
    with_kept.add(counted, 1, 2)
    with_kept.close()
    header, line = with_kept.path.read_text().splitlines()
    forged = json.loads(line) | {"result": plain, "check": f"{zlib.crc32(plain.encode()):08x}"}
    with_kept.path.write_text(header + "\n" + json.dumps(forged) + "\n")

    again = Kept(tmp_path, "shared")
    assert again.find(counted, 1) is MISSING
    again.close()


def test_a_result_of_another_type_is_done_again(marks: Path, tmp_path: Path) -> None:
    """A line that is whole and well formed, but holds text where the task gives a number, is not believed."""
    keeping = Kept(tmp_path, marks)
    keeping.add(counted, 3, "nine")
    keeping.close()

    again = Kept(tmp_path, marks)
    assert again.find(counted, 3) is MISSING
    again.close()


def test_a_pipe_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    """It is said at once, and nobody waits for its other end."""
    with_kept = Kept(tmp_path, "shared")
    with_kept.forget()
    os.mkfifo(with_kept.path)
    with pytest.raises(InputError, match="is no file"):
        Kept(tmp_path, "shared")
