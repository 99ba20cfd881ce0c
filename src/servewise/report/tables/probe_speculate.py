"""Tables of ``probe speculate``: acceptance by position, predicted beside measured speed-up, the best by batch."""

from __future__ import annotations

from collections.abc import Callable

from servewise.report.reading import Row, items, number, rows
from servewise.report.table import Column, Table, build
from servewise.report.wording import count, figure, percent, seconds, times


def tables(result: Row) -> tuple[Table, ...]:
    """Acceptance, then the draft lengths, then the best of them by batch."""
    return (_positions(result), _lengths(result), _batches(result))


def _positions(result: Row) -> Table:
    columns = (
        Column("Position", lambda row: count(row.get("position"))),
        Column("Asked", lambda row: count(row.get("asked"))),
        Column("Offered", lambda row: count(row.get("offered"))),
        Column("Reached", lambda row: count(row.get("reached"))),
        Column("Accepted", lambda row: count(row.get("accepted"))),
        Column("Of reached", lambda row: percent(row.get("acceptance"))),
        Column("Of asked", lambda row: percent(row.get("survival"))),
        Column("95% interval", lambda row: _interval(row.get("ci95_survival"), percent)),
    )
    note = "Offered: the draft had a token. Reached: and all before it were accepted. Interval: over prompts."
    return build("Acceptance by position", columns, rows(result, "acceptance_by_position"), note=note)


def _lengths(result: Row) -> Table:
    columns = (
        Column("Batch", lambda row: count(row.get("batch"))),
        Column("K", lambda row: count(row.get("k"))),
        Column("Tokens", lambda row: figure(row.get("tokens_per_verification"))),
        Column("Tokens predicted", lambda row: figure(row.get("tokens_per_verification_predicted_timed")), wide=True),
        Column("Draft (steps)", lambda row: figure(row.get("draft_steps")), wide=True),
        Column("Verify (steps)", lambda row: figure(row.get("verify_steps"))),
        Column("All prompts", lambda row: times(row.get("speedup_predicted"))),
        Column("95% interval", lambda row: _interval(row.get("ci95_speedup_predicted"), _plain), wide=True),
        Column("Predicted", lambda row: times(row.get("speedup_predicted_timed"))),
        Column("Measured", lambda row: times(row.get("speedup"))),
        Column("95% interval", lambda row: _interval(row.get("ci95_speedup"), _plain)),
        Column("Same output", lambda row: percent(row.get("identical_outputs"))),
    )
    best = {(number(row.get("batch")), number(row.get("best_k"))) for row in rows(result, "by_batch")}
    note = (
        "Tokens: a verification yields. Steps: over a plain step of that batch. All prompts: predicted for them; "
        "predicted and measured: for those that were timed. K = 0: plain decoding."
    )
    return build(
        "Speed-up by draft length",
        columns,
        rows(result, "rows"),
        note=note,
        marks=lambda row: "good" if (number(row.get("batch")), number(row.get("k"))) in best else "",
        grouped=True,
    )


def _batches(result: Row) -> Table:
    columns = (
        Column("Batch", lambda row: count(row.get("batch"))),
        Column("Plain step", lambda row: seconds(row.get("step_s"))),
        Column("Draft cost c", lambda row: figure(row.get("draft_cost"))),
        Column("Best K predicted", lambda row: _best_k(row.get("best_k_predicted"))),
        Column("Speed-up predicted", lambda row: times(row.get("speedup_predicted"))),
        Column("Best K measured", lambda row: _best_k(row.get("best_k"))),
        Column("Speed-up measured", lambda row: times(row.get("speedup"))),
        Column("K by measured acceptance", lambda row: times(row.get("adaptive_speedup")), wide=True),
    )
    return build("Best draft length by batch", columns, rows(result, "by_batch"))


def _best_k(value: object) -> str:
    return "none pays" if number(value) == 0 else count(value)


def _plain(value: object) -> str:
    found = number(value)
    return "–" if found is None else f"{found:.2f}"


def _interval(value: object, word: Callable[[object], str]) -> str:
    ends = items(value)
    return f"{word(ends[0])} – {word(ends[1])}" if len(ends) == 2 else "–"
