"""Tables of ``compare``: two runs side by side."""

from __future__ import annotations

from servewise.report.reading import Row, items, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import UNKNOWN, by_key, times


def tables(result: Row) -> tuple[Table, ...]:
    """Each metric of A and B, their ratio with its interval, and the verdict."""
    columns = (
        Column("Metric", lambda row: text(row.get("metric"), UNKNOWN), prose=True),
        Column("A", lambda row: by_key(text(row.get("metric")), row.get("a"))),
        Column("B", lambda row: by_key(text(row.get("metric")), row.get("b"))),
        Column("B / A", lambda row: times(row.get("ratio"))),
        Column("95% interval", _interval),
        Column("Verdict", lambda row: text(row.get("verdict"), UNKNOWN), prose=True),
    )
    return (build("A against B", columns, rows(result, "rows")),)


def _interval(row: Row) -> str:
    pair = [number(each) for each in items(row.get("ci95"))]
    return f"{times(pair[0])} to {times(pair[1])}" if len(pair) == 2 and None not in pair else UNKNOWN
