"""Progress where stderr is no terminal: a line now and then, with how many are done and how many a second."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from servewise.cli import progress


def test_lines_for_a_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Told every 10 s for 65 s of 10,000,000 requests at 1,000 a second: two lines, half a minute apart."""
    clock = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with progress.progress_bar("simulating") as tell:
        for second in range(0, 65, 10):
            clock[0] = float(second)
            tell(second * 1_000, 10_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "simulating: 30,000 of 10,000,000, 1,000/s",
        "simulating: 60,000 of 10,000,000, 1,000/s",
    ]


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """What ends within half a minute leaves a log as it was."""
    with progress.progress_bar("simulating") as tell:
        for done in range(15):
            tell(done, 15)
    assert not capsys.readouterr().err
