"""The end of a log."""

from __future__ import annotations

from pathlib import Path

from servewise.measure.servers.log import last_lines


def test_the_last_lines_that_hold_anything_come_in_order(tmp_path: Path) -> None:
    """Empty lines are passed over, and a long log is not read whole."""
    log = tmp_path / "log"
    log.write_bytes(b"x" * 1_000_000 + b"\nfirst\n\n\nsecond\n")
    assert last_lines(log, 2) == ["first", "second"]


def test_bytes_that_are_no_text_and_lines_without_end_are_shown_cut(tmp_path: Path) -> None:
    """Whatever a server wrote, what is shown is short and printable."""
    log = tmp_path / "log"
    log.write_bytes(b"\xff\xfe\x00bad\x1b[2J" + b"y" * 9_000)
    (line,) = last_lines(log, width=80)
    assert len(line) == 80
    assert line.isprintable()


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    """A missing file is no error: the failure that is told about is the server's."""
    assert last_lines(tmp_path / "none") == []
