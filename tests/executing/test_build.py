"""Which servewise computes a result."""

from __future__ import annotations

from pathlib import Path

from servewise.executing.build import difference, source_digest, this_build


def test_a_changed_file_is_another_build(tmp_path: Path) -> None:
    """One letter in one file, or a file more, gives another digest; compiled files do not count."""
    (tmp_path / "a.py").write_text("x = 1\n")
    first = source_digest(tmp_path)
    (tmp_path / "a.pyc").write_text("compiled")
    assert source_digest(tmp_path) == first

    (tmp_path / "a.py").write_text("x = 2\n")
    changed = source_digest(tmp_path)
    (tmp_path / "b.toml").write_text("")
    assert len({first, changed, source_digest(tmp_path)}) == 3


def test_what_differs_is_named() -> None:
    """The first part in which another build differs, theirs and ours; one that is not told is unknown."""
    ours = this_build()

    assert difference(ours, dict(ours)) is None
    assert difference(ours, {**ours, "Python": "3.9"}) == f"Python 3.9, not {ours['Python']}"
    assert difference(ours, {}) == f"servewise unknown, not {ours['servewise']}"
