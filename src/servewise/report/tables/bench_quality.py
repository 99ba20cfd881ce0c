"""Tables of ``bench --quality-against``: the speed of both builds, and how far their answers agree."""

from __future__ import annotations

from collections.abc import Callable

from servewise.report.reading import Row, items, mapping, number, rows, text
from servewise.report.table import Column, Table, build, facts
from servewise.report.tables.latency import latency_columns
from servewise.report.wording import UNKNOWN, count, figure, percent, rate


def tables(result: Row) -> tuple[Table, ...]:
    """Speed, then quality."""
    return _speed(result), _quality(mapping(result.get("quality")))


def _speed(result: Row) -> Table:
    columns = (
        Column("Build", lambda row: text(row.get("precision"), UNKNOWN), prose=True),
        Column("Answered", lambda row: count(row.get("completed"))),
        Column("Errors", lambda row: count(row.get("errors"))),
        *latency_columns(),
        Column("Tokens/s", lambda row: rate(row.get("output_tokens_per_s"))),
    )
    note = "Greedy, with logprobs asked for, which cost some servers time."
    return build("Speed of both builds", columns, rows(result, "rows"), note=note)


def _quality(found: Row) -> Table:
    unit = text(found.get("unit"), "tokens")
    parted = figure(found.get("first_difference_p50"))
    pairs = [
        ("Prompts answered by both", count(found.get("prompts"))),
        ("Answers that are the same to the end", _with(found, "exact_share", percent)),
        (f"Steps that agree, of those with the same text before ({unit})", _with(found, "step_agreement", percent)),
        (f"Median place of the first difference ({unit})", parted),
        ("KL a step, at the least (nats)", _with(found, "kl_low_nats", figure)),
        ("Total variation a step, from", _with(found, "tv_low", figure)),
        ("Total variation a step, to", _with(found, "tv_high", figure)),
        ("Probability beyond the returned tokens", _with(found, "unseen", percent)),
    ]
    return facts("How far the second agrees with the first", pairs, note="In brackets: 95% intervals over prompts.")


def _with(found: Row, name: str, word: Callable[[object], str]) -> str:
    """The value with its interval."""
    value = word(found.get(name))
    ends = [number(each) for each in items(found.get(f"ci95_{name}"))]
    if len(ends) != 2 or None in ends or value == UNKNOWN:
        return value
    return f"{value} ({word(ends[0])} to {word(ends[1])})"
