"""The table of what speculation gave."""

from __future__ import annotations

from typing import Any

from servewise.report.tables import fleet, simulate

ROW: dict[str, Any] = {
    "policy": "vllm",
    "rate_per_s": 2.0,
    "tokens_per_verification": 2.5,
    "verifications": 100,
    "drafted_tokens": 300,
    "acceptance_by_position": [0.8, 0.5, 0.2],
    "undrafted_tokens": 250,
}
TITLE = "What speculation gave"


def shown(tables: Any) -> list[list[str]]:
    """The cells of the table of that title; none: it is not there."""
    found = [table for table in tables if table.title == TITLE]
    return [list(row) for table in found for row in table.cells]


def test_a_row_by_hand() -> None:
    """100 verifications of 2.5 tokens and 250 tokens without a draft: half of the tokens came undrafted."""
    ((name, rate, tokens, stood, undrafted, verifications),) = shown(simulate.tables({"rows": [ROW]}))

    assert (name, rate, tokens, verifications) == ("vllm", "2", "2.5", "100")
    assert stood == "80.0%, 50.0%, 20.0%"
    assert undrafted == "50.0%"


def test_a_fleets_row_is_named_by_layout_and_router() -> None:
    """As in its other tables."""
    row = ROW | {"layout": "2 mixed", "router": "random"}

    assert shown(fleet.tables({"rows": [row], "replicas": []}))[0][0] == "2 mixed, random"


def test_nothing_is_shown_where_nothing_drafts() -> None:
    """No table, for a server or for a fleet."""
    plain = {"policy": "vllm", "rate_per_s": 2.0}

    assert not shown(simulate.tables({"rows": [plain]}))
    assert not shown(fleet.tables({"rows": [plain], "replicas": []}))
