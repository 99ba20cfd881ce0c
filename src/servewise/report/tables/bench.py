"""Tables of ``bench``: what a server was measured to do."""

from __future__ import annotations

from servewise.report.reading import Row, rows
from servewise.report.table import Column, Table, build
from servewise.report.tables.latency import latency_columns, standing, throughput_columns
from servewise.report.wording import count, figure


def tables(result: Row) -> tuple[Table, ...]:
    """The measured runs."""
    columns = (
        Column("Streams", lambda row: count(row.get("concurrency"))),
        Column("Rate/s", lambda row: figure(row.get("rate_per_s"))),
        Column("Requests", lambda row: count(row.get("requests")), wide=True),
        Column("Errors", lambda row: count(row.get("errors"))),
        *latency_columns(),
        *throughput_columns(),
        Column("Cached tokens", lambda row: count(row.get("cached_tokens")), wide=True),
    )
    return (build("Latency by load", columns, rows(result, "rows"), marks=standing),)
