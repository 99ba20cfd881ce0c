"""A moment of a simulated run, written for a trace viewer."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from servewise.ask.moment import window_of
from servewise.ask.simulate import simulate
from servewise.errors import InputError


def asked(folder: Path, moment: str | None) -> Path:
    """The file of a small run."""
    file = folder / "moment.json"
    simulate(
        "llama-3.1-8b",
        "h100-sxm",
        workload="azure-conv",
        requests=60,
        rate=2.0,
        seeds=1,
        moment=moment,
        moment_file=file,
    )
    return file


def test_the_file_holds_what_overlaps_the_window(tmp_path: Path) -> None:
    """Every step and every request's phase in it overlaps the window; steps do not overlap each other."""
    events = [each for each in json.loads(asked(tmp_path, "5s:8s").read_bytes())["traceEvents"] if each["ph"] == "X"]
    assert {each["cat"] for each in events} >= {"step", "prefill", "decode"}
    assert all(each["ts"] < 8e6 and each["ts"] + each["dur"] > 5e6 for each in events)
    steps = sorted((each["ts"], each["ts"] + each["dur"]) for each in events if each["cat"] == "step")
    assert all(end <= begin + 0.01 for (_, end), (begin, _) in pairwise(steps))


@pytest.mark.parametrize("text", ["", "5", "5s", "a:b", "8:5", "5:5", "-1:2", "1.2.3:4", "1s:2m"])
def test_no_window_is_one_clear_line(text: str) -> None:
    """What is no window says so and how to write one."""
    with pytest.raises(InputError, match="moment"):
        window_of(text)


def test_a_window_in_which_nothing_runs_leaves_no_file(tmp_path: Path) -> None:
    """Nothing to see is said, and no empty file is left."""
    with pytest.raises(InputError, match="nothing runs"):
        asked(tmp_path, "9000s:9001s")
    assert not list(tmp_path.iterdir())


def test_a_file_without_a_window_is_refused(tmp_path: Path) -> None:
    """Where to write, but not what: refused before anything runs."""
    with pytest.raises(InputError, match="not which"):
        asked(tmp_path, None)
