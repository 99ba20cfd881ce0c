"""Tables of ``simulate``: latencies by policy and rate, and where each policy stops keeping up."""

from __future__ import annotations

from servewise.report.reading import Row, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.tables.drafts import drafts_table
from servewise.report.tables.latency import latency_columns, policy, standing, throughput_columns
from servewise.report.tables.phases import phases_table
from servewise.report.wording import UNKNOWN, figure, percent, rate

_UNSTABLE = "* unstable: its latencies grow with the length of the run."


def tables(result: Row) -> tuple[Table, ...]:
    """The runs, where their time went and what speculation gave (where it is known), and the knees."""
    return (_runs(result), *phases_table(result), *drafts_table(result), _knees(result))


def _runs(result: Row) -> Table:
    found = rows(result, "rows")
    unit_step = result.get("unit_step") is True
    columns = (
        Column("Policy", policy, prose=True),
        Column("Rate/step" if unit_step else "Rate/s", lambda row: figure(row.get("rate_per_s"))),
        *latency_columns(unit_step=unit_step),
        *throughput_columns("step" if unit_step else "s"),
        Column("Cached", lambda row: percent(row.get("prefix_hit_rate")), wide=not any(map(_cached, found))),
    )
    notes = [
        "Latencies in steps, rates per step." if unit_step else "",
        _UNSTABLE if any(row.get("stable") is False for row in found) else "",
    ]
    return build(
        "Latency by policy and rate",
        columns,
        found,
        note=" ".join(filter(None, notes)),
        marks=standing,
        grouped=True,
    )


def _cached(row: Row) -> bool:
    return row.get("cached_tokens") not in (None, 0)


def _knees(result: Row) -> Table:
    columns = (
        Column("Policy", lambda row: text(row.get("policy"), UNKNOWN), prose=True),
        Column("Keeps up at", lambda row: _rate(row, "low_per_s")),
        Column("No longer at", lambda row: _rate(row, "high_per_s")),
    )
    per = "step" if result.get("unit_step") is True else "s"
    return build(f"Where each policy stops keeping up (requests/{per})", columns, rows(result, "knees"))


def _rate(row: Row, key: str) -> str:
    return rate(row.get(key))
