"""Table of ``probe kv``: the study's first table on a real model."""

from __future__ import annotations

from servewise.report.reading import Row, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import UNKNOWN, count, figure, seconds, times


def tables(result: Row) -> tuple[Table, ...]:
    """One row a dtype and length."""
    columns = (
        Column("dtype", lambda row: text(row.get("dtype"), UNKNOWN), prose=True),
        Column("Tokens", lambda row: count(row.get("tokens"))),
        Column("Positions", lambda row: count(row.get("positions_without_cache"))),
        Column("cached", lambda row: count(row.get("positions_with_cache"))),
        Column("Time", lambda row: seconds(row.get("wall_without_cache_s"))),
        Column("cached", lambda row: seconds(row.get("wall_with_cache_s"))),
        Column("Faster", lambda row: times(row.get("speedup"))),
        Column("Equal", _equal),
        Column("Logits differ", lambda row: figure(row.get("max_logit_difference"))),
        Column("Largest logit", lambda row: figure(row.get("max_logit")), wide=True),
        Column("Smallest gap to the second-best", lambda row: figure(row.get("smallest_margin")), wide=True),
    )
    note = "Positions are counted by the code that runs, the last token's fed back included. Logits: at most."
    found = rows(result, "rows")
    return (build("The same reply with and without a KV cache", columns, found, note=note, marks=_mark, grouped=True),)


def _equal(row: Row) -> str:
    return "all" if row.get("tokens_identical") is True else count(row.get("equal_tokens"))


def _mark(row: Row) -> str:
    return "good" if row.get("tokens_identical") is True else "bad"
