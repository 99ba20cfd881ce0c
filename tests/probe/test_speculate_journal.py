"""A survey's results are kept as they come: on the disk, whole, and gone on with after whatever ended it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.small_disks import small_disk

from servewise.errors import InputError
from servewise.probe.speculate.journal import Journal

OF = {"model": "läufer", "k": [1, 2]}


class Measuring:
    """Counts what it is asked for."""

    def __init__(self, path: Path) -> None:
        self.journal = Journal(path, OF)
        self.done: list[str] = []

    def of(self, key: str) -> str:
        """What stands under ``key``."""

        def measure() -> str:
            self.done.append(key)
            return value(key)

        found: str = self.journal.get((key, 1), measure)
        return found


def value(key: str) -> str:
    """What measuring ``key`` gives: some 300 bytes."""
    return f"{key} ß" * 50


def test_a_line_cut_anywhere_is_measured_again_and_no_other(tmp_path: Path) -> None:
    """Any prefix of the file after its header goes on: whole lines are known, also where a cut splits a letter."""
    path = tmp_path / "survey.jsonl"
    first = Measuring(path)
    assert [first.of(key) for key in ("a", "ü")] == [value("a"), value("ü")]
    whole = path.read_bytes()
    header = len(whole.splitlines(keepends=True)[0])
    for size in (*range(header, len(whole), 11), len(whole)):
        path.write_bytes(whole[:size])
        again = Measuring(path)

        assert [again.of(key) for key in ("a", "ü")] == [value("a"), value("ü")]
        assert again.done == ["a", "ü"][whole[:size].count(b"\n") - 1 :]
        assert path.read_bytes() == whole


def test_a_full_disk_is_one_line_and_what_is_kept_goes_on(tmp_path: Path) -> None:
    """8 KiB take some results; the next is told as not written, by file and cure; with room the rest is measured."""
    keys = [str(number) for number in range(40)]
    with small_disk(tmp_path, 8) as space:
        path = space.seen / "survey.jsonl"
        first = Measuring(path)
        with pytest.raises(InputError, match=r"survey\.jsonl: cannot be written: No space left on device; make room"):
            list(map(first.of, keys))
        space.must("mount", "-o", "remount,size=1m", str(space.place))
        again = Measuring(path)
        found = list(map(again.of, keys))
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]

    assert 1 < len(first.done) < 40
    assert found == list(map(value, keys))
    assert again.done == keys[len(first.done) - 1 :]
    assert [line["key"] for line in lines[1:]] == [[key, 1] for key in keys]
