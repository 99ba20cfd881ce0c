"""Caveats that are known after a run stand in its header."""

from __future__ import annotations

from pathlib import Path

import servewise
from servewise.ask.run import run_answer
from servewise.caveats import Caveat
from servewise.records.noted import note_caveats
from servewise.records.run_directory import read_run


def test_a_kept_run_tells_what_its_answer_told(tmp_path: Path) -> None:
    """Opened alone, a simulated run has every caveat of the answer that it was made for, an unstable queue's too."""
    made = servewise.simulate(
        "llama-3.1-8b",
        accelerator="h100-sxm",
        workload="chat",
        rate=(400,),
        requests=300,
        run_dir=tmp_path / "run",
    )
    codes = {each.code for each in made.caveats}

    assert "unstable" in codes
    assert codes <= {each.code for each in run_answer(tmp_path / "run").caveats}


def test_a_caveat_is_noted_once(tmp_path: Path) -> None:
    """Noting the same again changes nothing; the rows stay readable."""
    servewise.simulate("llama-3.1-8b", accelerator="h100-sxm", workload="chat", requests=20, run_dir=tmp_path / "run")
    more = (Caveat("told-later", "what", "cure"),)
    note_caveats([tmp_path / "run"], more)
    once = read_run(tmp_path / "run").caveats
    note_caveats([tmp_path / "run"], more)

    assert once == read_run(tmp_path / "run").caveats
    assert [each.code for each in once].count("told-later") == 1
