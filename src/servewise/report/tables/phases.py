"""Where the time of a mean request went, by policy and rate: parts that add up to its end-to-end latency."""

from __future__ import annotations

from collections.abc import Callable

from servewise.report.reading import Row, mapping, rows
from servewise.report.table import Cell, Column, Table, build
from servewise.report.tables.latency import policy
from servewise.report.wording import figure, seconds, steps

_PARTS = {
    "queue_s": "Queue",
    "prefill_s": "Prefill",
    "decode_s": "Decode",
    "preempted_s": "Preempted",
    "transfer_s": "Transfer",
}


def phases_table(result: Row) -> tuple[Table, ...]:
    """One row a run that knows its parts; no table where none does. A part that is nought in all rows is left out."""
    found = [row for row in rows(result, "rows") if mapping(row.get("mean_phases"))]
    if not found:
        return ()
    unit_step = result.get("unit_step") is True
    write = steps if unit_step else seconds
    shown = [name for name in _PARTS if any(mapping(row.get("mean_phases")).get(name) for row in found)]
    columns = (
        Column("Policy", policy, prose=True),
        Column("Rate/step" if unit_step else "Rate/s", lambda row: figure(row.get("rate_per_s"))),
        *(Column(_PARTS[name], _part(name, write)) for name in shown),
        Column("E2E", lambda row: write(mapping(row.get("e2e_s")).get("mean"))),
    )
    return (build("Where a mean request's time goes", columns, found, note="The parts add up to E2E.", grouped=True),)


def _part(name: str, write: Callable[[object], str]) -> Cell:
    return lambda row: write(mapping(row.get("mean_phases")).get(name))
