"""Tables of ``prefix``: how much of the prompts can be reused, what breaks it, what it saves."""

from __future__ import annotations

from servewise.report.reading import Row, number, rows, text
from servewise.report.table import Column, Table, build, facts
from servewise.report.wording import UNKNOWN, count, dollars, percent


def tables(result: Row) -> tuple[Table, ...]:
    """Totals and cost, what breaks reuse, reuse by depth and by capacity."""
    return (_totals(result), _breaks(result), _depth(result), _capacity(result))


def _totals(result: Row) -> Table:
    full, cached = number(result.get("cost_usd")), number(result.get("cost_with_cache_usd"))
    saved = full - cached if full is not None and cached is not None else None
    pairs = [
        ("Requests", count(result.get("requests"))),
        ("Prompt tokens", count(result.get("prompt_tokens"))),
        ("Reusable prompt tokens", count(result.get("reusable_tokens"))),
        ("Hit rate", percent(result.get("hit_rate"))),
        ("Cost without a cache", dollars(full)),
        ("Cost with the cache", dollars(cached)),
        ("Saved", dollars(saved)),
        ("Terms", text(result.get("terms"), UNKNOWN)),
    ]
    return facts("Prompt reuse", pairs)


def _breaks(result: Row) -> Table:
    columns = (
        Column("At token", lambda row: count(row.get("offset_tokens"))),
        Column("Kind", lambda row: text(row.get("kind"), UNKNOWN), prose=True),
        Column("Requests", lambda row: count(row.get("requests"))),
        Column("Lost tokens", lambda row: count(row.get("lost_tokens"))),
        Column("Example (redacted)", lambda row: text(row.get("example_redacted")), prose=True),
    )
    return build("What breaks the shared prefix", columns, rows(result, "breaks"))


def _depth(result: Row) -> Table:
    columns = (
        Column("From token", lambda row: count(row.get("offset_tokens"))),
        Column("Prompts that reach it", lambda row: count(row.get("requests"))),
        Column("Hit rate", lambda row: percent(row.get("hit_rate"))),
    )
    return build("Reuse by depth in the prompt", columns, rows(result, "reuse_by_depth"))


def _capacity(result: Row) -> Table:
    columns = (
        Column("Cache tokens", lambda row: count(row.get("capacity_tokens"))),
        Column("Hit rate", lambda row: percent(row.get("hit_rate"))),
    )
    return build("Reuse by size of the cache", columns, rows(result, "by_capacity"))
