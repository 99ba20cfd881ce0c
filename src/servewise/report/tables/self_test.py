"""Table of ``bench --self-test``: the load client's own error by load."""

from __future__ import annotations

from servewise.report.reading import Row, mapping, rows
from servewise.report.table import Column, Table, build
from servewise.report.wording import count, rate, seconds


def tables(result: Row) -> tuple[Table, ...]:
    """One row a number of streams."""
    columns = (
        Column("Streams", lambda row: count(row.get("streams"))),
        Column("Tokens/s", lambda row: rate(row.get("tokens_per_s"))),
        Column("TTFT error", lambda row: _error(row, "ttft", "mean_size_s")),
        Column("p99", lambda row: _error(row, "ttft", "p99_size_s")),
        Column("TPOT error", lambda row: _error(row, "tpot", "mean_size_s")),
        Column("p99", lambda row: _error(row, "tpot", "p99_size_s")),
        Column("CPU/token", lambda row: seconds(row.get("cpu_s_per_token"))),
        Column("Requests", lambda row: count(row.get("requests")), wide=True),
        Column("Failed", lambda row: count(row.get("failed")), wide=True),
        Column("Server late, p99", lambda row: seconds(row.get("server_late_p99_s")), wide=True),
    )
    note = "Mean and p99 of said minus true, in size; a token has truly left when the server's send returned."
    return (build("The client's own error on this machine", columns, rows(result, "rows"), note=note),)


def _error(row: Row, which: str, what: str) -> str:
    return seconds(mapping(row.get(which)).get(what))
