"""Tables of ``steptime``: each step's time in its parts, and the ridge."""

from __future__ import annotations

from servewise.report.reading import Row, distinct, number, rows, text
from servewise.report.table import Column, Table, build, facts
from servewise.report.tables.precision import precisions
from servewise.report.wording import UNKNOWN, count, figure, rate, seconds


def tables(result: Row) -> tuple[Table, ...]:
    """The steps, the ridge, and the precisions where they are given."""
    return (_steps(result), _ridge(result), precisions(result))


def _steps(result: Row) -> Table:
    found = rows(result, "rows")
    contexts = distinct([count(row.get("context_tokens")) for row in found])
    one_context = len(contexts) == 1 and contexts[0] != UNKNOWN
    columns = (
        Column("Batch", lambda row: count(row.get("batch"))),
        Column("Context", lambda row: "" if one_context else count(row.get("context_tokens"))),
        Column("Compute", lambda row: seconds(row.get("compute_s"))),
        Column("Memory", lambda row: seconds(row.get("memory_s"))),
        Column("Overhead", lambda row: _present(row, "overhead_s")),
        Column("Links", lambda row: _present(row, "communication_s")),
        Column("Step", lambda row: seconds(row.get("step_s"))),
        Column("Floor", lambda row: seconds(row.get("floor_s")), wide=True),
        Column("Tokens/s", lambda row: rate(row.get("tokens_per_s"))),
        Column("Bound by", lambda row: text(row.get("bound"), UNKNOWN), prose=True),
    )
    note = f"Context {contexts[0]} tokens. " if one_context else ""
    return build("Time of one step", columns, found, note=note + "Compute and memory overlap; no step beats the floor.")


def _present(row: Row, key: str) -> str:
    return seconds(row.get(key)) if number(row.get(key)) else UNKNOWN


def _ridge(result: Row) -> Table:
    pairs = [
        ("Batch where compute meets memory, ideal", _batch(result, "ridge_batch")),
        ("The same without the KV cache's bytes", _batch(result, "ridge_batch_without_kv")),
        ("By these step times", _batch(result, "ridge_batch_estimated") if _estimated(result) else UNKNOWN),
    ]
    return facts("Ridge", pairs)


def _estimated(result: Row) -> bool:
    """Whether the step times are others than the ideal ones, whose ridge then is another."""
    return "ridge_batch_estimated" in result and text(result.get("estimator")) != "ideal"


def _batch(result: Row, key: str) -> str:
    if key in result and result[key] is None:
        return "none: memory-bound at every batch"
    return figure(result.get(key))
