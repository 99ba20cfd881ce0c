"""What a sweep keeps, after a power cut at any moment: whole results or none, those told as flushed among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.executing.tasks import counted
from tests.records.powercut import each_cut, recorded

from servewise.executing import kept
from servewise.executing.kept import MISSING, Kept

DONE = (0, 3, 1, 2)


@pytest.mark.parametrize("every_s", [0.0, 1e6])
def test_results_are_whole_or_done_again(monkeypatch: pytest.MonkeyPatch, every_s: float) -> None:
    """Each result is found as it was or not at all; flushed at each, all that were added; else those of a closed one.

    The sweep then goes on in what is left.
    """
    monkeypatch.setattr(kept, "SYNC_S", every_s)
    shared = "a question"

    def look(left: Path, promised: list[Any]) -> None:
        again = Kept(left / "deep" / "kept", shared)
        found = {task: again.find(counted, task) for task in DONE}
        assert all(value in (task * 10, MISSING) for task, value in found.items())
        assert all(found[task] is not MISSING for task in promised)
        for task in DONE:
            again.add(counted, task, task * 10)
        again.close()
        last = Kept(left / "deep" / "kept", shared)
        assert [last.find(counted, task) for task in DONE] == [task * 10 for task in DONE]
        last.close()

    with recorded() as recording:
        keeping = Kept(recording.root / "deep" / "kept", shared)
        for task in DONE:
            keeping.add(counted, task, task * 10)
            if not every_s:
                recording.promise(task)
        keeping.close()
        for task in DONE:
            recording.promise(task)
        states = each_cut(recording, look)

    assert states > 5
