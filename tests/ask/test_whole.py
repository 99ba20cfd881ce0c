"""The study and the demo as answers, on tables and traces small enough for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servewise.ask import demo as demo_module
from servewise.ask import study as study_module
from servewise.ask.demo import demo
from servewise.ask.study import study
from servewise.study.memory import kv_bytes_table, largest_batch_table

WORKLOAD = """
requests = 120
[arrivals]
kind = "poisson"
rate_per_s = 1.0
[prompt_tokens]
kind = "lognormal"
median = 300
sigma = 0.5
[output_tokens]
kind = "fixed"
tokens = 60
[prefix]
groups = 2
tokens = 64
"""


def test_study_holds_every_table_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables come in the study's order with a verdict a row, by one process or two."""
    monkeypatch.setattr(study_module, "MAKERS", {"kv_bytes": kv_bytes_table, "largest_batch": largest_batch_table})
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(study_module, "figures", lambda made: ())
    answer = study(progress=lambda done, total: told.append((done, total)))

    assert [table["name"] for table in answer.result["tables"]] == ["kv_bytes", "largest_batch"]
    assert answer.result["all_agree"] is True
    for table in answer.result["tables"]:
        assert all({"study", "ours", "agrees", "tolerance"} <= set(row) for row in table["rows"])
    assert told == [(1, 2), (2, 2)]


def test_demo_asks_every_question(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each section is the document of its command, and their caveats are gathered."""
    workload = tmp_path / "w.toml"
    workload.write_text(WORKLOAD)
    monkeypatch.setattr(demo_module, "TRACE", str(workload))
    monkeypatch.setattr(demo_module, "PREFIX_TRACE", str(workload))
    monkeypatch.setattr(demo_module, "RATES", (0.5,))
    monkeypatch.setattr(demo_module, "RIVALS", ("a100-80gb",))
    monkeypatch.setattr(demo_module, "COUNTS", (1,))
    monkeypatch.setattr(study_module, "MAKERS", {"kv_bytes": kv_bytes_table})
    monkeypatch.setattr(study_module, "figures", lambda made: ())
    sections = json.loads(demo().dumps())["result"]["sections"]

    assert list(sections) == ["size", "steptime", "simulate", "speculate", "prefix", "plan", "study"]
    for name, document in sections.items():
        assert document["schema"] == f"servewise.{name}/1"
    assert [row["policy"] for row in sections["simulate"]["result"]["rows"]] == ["static", "dynamic", "continuous"]
