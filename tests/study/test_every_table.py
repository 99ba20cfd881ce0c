"""All tables together: complete, in the contract's form, and counted right."""

from __future__ import annotations

import json

import pytest

from servewise.answer import finite
from servewise.study import batching, every_table, figures, published, sensitivity, summary, tables
from servewise.study.agreement import exact, shown
from servewise.study.row import StudyTable


@pytest.fixture(scope="module")
def made() -> tuple[StudyTable, ...]:
    """Every table, the simulated ones with three seeds: enough for their form, not for their verdicts."""
    patch = pytest.MonkeyPatch()
    for name in ("SEEDS", "FEWER_SEEDS"):
        patch.setattr(batching, name, 3)
    patch.setattr(batching, "RUN_LENGTHS", (100, 200))
    patch.setattr(sensitivity, "MODELS", 1)
    try:
        return tables()
    finally:
        patch.undo()


def test_every_table_of_the_study_is_there(made: tuple[StudyTable, ...]) -> None:
    """The tables come in the study's order, none is empty, and all their figures are there."""
    assert [table.name for table in made] == list(every_table.MAKERS)
    by_name = {table.name: table for table in made}
    assert len(by_name["batching"].rows) == 5 * 3 * 3
    assert len(by_name["largest_batch"].rows) == 3 * 4
    assert len(by_name["quantisation"].select("KL")) == len(by_name["quantisation"].select("top-1 agreement")) == 2 * 5
    assert all(table.rows for table in made)


def test_rows_have_the_contracts_keys(made: tuple[StudyTable, ...]) -> None:
    """Every row is plain JSON with study, ours, agrees and tolerance."""
    for table in made:
        document = json.loads(json.dumps(finite(table.to_json()), allow_nan=False))
        assert document["name"] == table.name
        for row in document["rows"]:
            assert {"study", "ours", "agrees", "tolerance", "quantity"} <= set(row)
            assert row["tolerance"]


def test_tables_without_chance_agree_whatever_the_seeds(made: tuple[StudyTable, ...]) -> None:
    """Every table that no random run enters agrees."""
    fixed = ("cache_work", "kv_bytes", "largest_batch", "decode_step", "speculation", "prompt_caching")
    assert all(table.agrees for table in made if table.name in fixed)


def test_figures_hold_the_studys_two(made: tuple[StudyTable, ...]) -> None:
    """Both figures are there with the study's series beside ours, point by point."""
    first, second = figures(made)
    assert [panel.name for panel in first.panels] == ["positions", "largest_batch", "step_time", "output_rate"]
    panels = {panel.name: panel for panel in (*first.panels, *second.panels)}
    without = panels["positions"].series[0]
    assert without.x == (20, 40, 80, 160)
    assert without.study == without.y == (290, 980, 3560, 13520)
    static = panels["latency_p95"].series[0]
    assert static.name == "static"
    assert static.x == tuple(published.BATCHING)
    assert static.study == (1134, 735, 715, 1547, 14559)
    assert static.interval is not None
    assert all(low < high for low, high in static.interval)
    assert panels["kl"].series[0].study == (0.00007, 0.0014, 0.027, 0.113, 0.847)
    for panel in panels.values():
        for line in panel.series:
            assert len(line.x) == len(line.y) == len(line.study) > 1
    json.dumps([each.to_json() for each in (first, second)], allow_nan=False)


def test_summary_counts_agreement() -> None:
    """A summary counts what is judged, names what disagrees, and leaves out what is not judged."""
    rows = (exact({}, "a", "1", 1), exact({}, "b", "1", 2), shown({}, "c", "1", 5, "why"))
    found = summary([StudyTable(name="t", title="T", rows=rows)])
    assert (found.judged, found.agreeing, found.not_judged) == (2, 1, 1)
    assert [(name, row.quantity) for name, row in found.disagreeing] == [("t", "b")]
    assert not found.all_agree


def test_progress_names_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is told of every run and table as it starts, and of the end."""
    table = StudyTable(name="t", title="T", rows=())
    monkeypatch.setattr(every_table, "MAKERS", {"first": lambda: table, "second": lambda: table})
    monkeypatch.setattr(every_table, "RUNS", {"second": lambda: [lambda: None]})
    said: list[tuple[int, int, str]] = []
    assert every_table.tables(lambda *each: said.append(each)) == (table, table)
    assert said == [(0, 3, "first"), (1, 3, "second"), (2, 3, "second"), (3, 3, "")]
