"""Columns for latencies, shared by simulated and measured runs."""

from __future__ import annotations

from collections.abc import Callable

from servewise.report.reading import Row, interval, percentile, text
from servewise.report.table import Cell, Column
from servewise.report.wording import UNKNOWN, figure, percent, rate, seconds, steps

_NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "itl_s": "ITL", "e2e_s": "E2E"}


def latency_columns(*, unit_step: bool = False) -> tuple[Column, ...]:
    """p50 and p95 of TTFT, and p95 of TPOT (``unit_step``: of end to end, in steps); the rest wide.

    A wide column shows the 95% interval of each p95.
    """
    shown = ("ttft_s", "e2e_s") if unit_step else ("ttft_s", "tpot_s")
    write = steps if unit_step else seconds
    columns: list[Column] = []
    for key, name in _NAMES.items():
        for at in ("p50", "p95"):
            hidden = key not in shown or (key, at) == ("tpot_s", "p50")
            columns.append(Column(f"{name} {at}", _value(key, at, write), wide=hidden))
        columns.append(Column(f"{name} p95, 95% interval", _interval(key, "p95", write), wide=True))
    return tuple(columns)


def _value(key: str, at: str, write: Callable[[object], str]) -> Cell:
    return lambda row: write(percentile(row.get(key), at))


def _interval(key: str, at: str, write: Callable[[object], str]) -> Cell:
    def cell(row: Row) -> str:
        found = interval(row.get(key), at)
        return f"{write(found[0])} to {write(found[1])}" if found else UNKNOWN

    return cell


def throughput_columns(per: str = "s") -> tuple[Column, ...]:
    """Output tokens and goodput per ``per`` (s or step), utilisation and counts."""
    return (
        Column(f"Tokens/{per}", lambda row: rate(row.get("output_tokens_per_s"))),
        Column("Goodput", lambda row: rate(row.get("goodput_per_s"))),
        Column("Use", lambda row: percent(row.get("utilisation"))),
        Column("Completed", lambda row: figure(row.get("completed")), wide=True),
        Column("Rejected", lambda row: figure(row.get("rejected")), wide=True),
        Column("Preempted", lambda row: figure(row.get("preemptions")), wide=True),
    )


def standing(row: Row) -> str:
    """Bad for a row that never settles, none otherwise."""
    return "bad" if row.get("stable") is False else ""


def policy(row: Row) -> str:
    """The row's policy, marked where its latencies grow with the length of the run."""
    mark = " *" if row.get("stable") is False else ""
    return text(row.get("policy"), UNKNOWN) + mark
