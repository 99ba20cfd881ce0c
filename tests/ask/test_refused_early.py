"""What cannot end well is refused before anything runs, and absurd limits are limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from servewise.ask.fleet import fleet
from servewise.ask.fleet_options import autoscale_of
from servewise.ask.simulate import simulate
from servewise.errors import InputError

LOAD = """
requests = 20
[arrivals]
kind = "poisson"
rate_per_s = 2.0
[prompt_tokens]
kind = "fixed"
tokens = 100
[output_tokens]
kind = "fixed"
tokens = 10
"""


@pytest.fixture
def load(tmp_path: Path) -> str:
    """A small workload file."""
    path = tmp_path / "load.toml"
    path.write_text(LOAD, encoding="utf-8")
    return str(path)


def untouched(*_args: object, **_named: object) -> None:
    """In place of what runs."""
    raise AssertionError("it ran")


def test_more_slots_than_blocks_saturate_as_the_blocks_let_them(load: str) -> None:
    """Each sequence holds a block at least, so slots beyond the blocks change nothing and cost nothing."""
    found = [
        simulate(
            "llama-3.1-8b",
            "h100-sxm",
            workload=load,
            policy="vllm",
            settings={"max_num_seqs": slots, "max_num_batched_tokens": 10**24},
            kv_blocks=50,
            seeds=1,
        ).result
        for slots in (50, 10**24)
    ]
    assert found[0]["knees"] == found[1]["knees"]
    assert [each["rows"][0]["e2e_s"] for each in found[:1]] == [found[1]["rows"][0]["e2e_s"]]


@pytest.mark.parametrize("asked", [simulate, fleet])
def test_an_occupied_run_directory_is_refused_before_it_runs(
    load: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: object
) -> None:
    """Minutes of simulation are not thrown away for a folder that was there from the start."""
    monkeypatch.setattr("servewise.ask.experiment._knee", untouched)
    monkeypatch.setattr("servewise.ask.experiment._replicate", untouched)
    monkeypatch.setattr("servewise.ask.fleet_experiment.replicate", untouched)
    with pytest.raises(InputError, match="not empty"):
        asked("llama-3.1-8b", "h100-sxm", workload=load, seeds=1, run_dir=tmp_path)  # type: ignore[operator]


def test_a_moment_that_cannot_be_written_is_refused_before_it_runs(
    load: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is simulated for a moment whose folder is not there."""
    monkeypatch.setattr("servewise.ask.simulate.run", untouched)
    for place in (tmp_path, tmp_path / "nowhere" / "moment.json"):
        with pytest.raises(InputError, match="cannot be written"):
            simulate("llama-3.1-8b", "h100-sxm", workload=load, seeds=1, moment="1s:2s", moment_file=place)


def test_a_digit_that_is_no_number_is_refused() -> None:
    """A superscript two is a digit to Unicode, and no number of replicas."""
    with pytest.raises(InputError, match="whole number"):
        autoscale_of("load=0.7,min=²")
