"""Each figure's numbers stand in a table of the same answer, whichever command gave it."""

from __future__ import annotations

from typing import Any

import pytest

from servewise.answer import Answer
from servewise.conditions import Conditions
from servewise.report import render_html
from servewise.report.figures import figures_of
from servewise.report.tables import tables_of

CONDITIONS = Conditions(hardware="1 x A", load="batch 8", lengths="512 tokens", precision="bf16")
PRECISIONS: list[dict[str, Any]] = [
    {"name": name, "weight_bytes": size, "kv_bytes_per_token": 1e5, "step_s": seconds, "tokens_per_s": 8 / seconds}
    for name, size, seconds in (("bf16", 16e9, 0.02), ("fp8", 8e9, 0.012), ("int4", 4e9, 0.009))
]


@pytest.mark.parametrize("command", ["plan", "size", "steptime"])
def test_precisions_are_drawn_beside_their_table(command: str) -> None:
    """The chart of bytes against speed links to a table that is on the page."""
    answer = Answer(command, CONDITIONS, {"precisions": PRECISIONS})
    titles = [table.title for table in tables_of(command, answer.result)]
    drawn = [figure.table.title for figure in figures_of(answer)]

    assert drawn
    assert set(drawn) <= set(titles)
    assert "bytes against speed" in render_html(answer, title="x")
