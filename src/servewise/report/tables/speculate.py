"""Tables of ``speculate``: speed-up by draft length, and by acceptance rate and draft cost."""

from __future__ import annotations

from servewise.report.reading import Row, number, rows
from servewise.report.table import Column, Table, build
from servewise.report.wording import count, figure, times


def tables(result: Row) -> tuple[Table, ...]:
    """The best draft length by batch and by acceptance, then all of them."""
    return (_batches(result), _lengths(result), _acceptance(result))


def _lengths(result: Row) -> Table:
    found = rows(result, "rows")
    by_batch = any("batch" in row for row in found)
    best = {} if by_batch else {number(result.get("best_k")): "good"}
    columns = (
        Column("Batch", lambda row: count(row.get("batch"))),
        Column("Draft tokens K", lambda row: count(row.get("k"))),
        Column("Tokens per verification", lambda row: figure(row.get("tokens_per_verification"))),
        Column("Speed-up", lambda row: times(row.get("speedup"))),
    )
    return build("Speed-up by draft length", columns, found, marks=lambda row: best.get(number(row.get("k")), ""))


def _batches(result: Row) -> Table:
    columns = (
        Column("Batch", lambda row: count(row.get("batch"))),
        Column("Draft cost (target steps)", lambda row: figure(row.get("draft_cost"))),
        Column("Best K", _best_k),
        Column("Speed-up", lambda row: times(row.get("speedup"))),
    )
    return build("Best draft length by batch", columns, rows(result, "by_batch"))


def _best_k(row: Row) -> str:
    return "none pays" if number(row.get("best_k")) == 0 else count(row.get("best_k"))


def _acceptance(result: Row) -> Table:
    columns = (
        Column("Acceptance", lambda row: figure(row.get("acceptance"))),
        Column("Draft cost (target steps)", lambda row: figure(row.get("draft_cost"))),
        Column("Best K", _best_k),
        Column("Speed-up", lambda row: times(row.get("speedup"))),
    )
    return build("Best draft length by acceptance", columns, rows(result, "by_acceptance"))
