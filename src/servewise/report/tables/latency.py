"""Columns for latencies, shared by simulated and measured runs."""

from __future__ import annotations

from collections.abc import Callable

from servewise.report.reading import Row, interval, items, number, percentile, text
from servewise.report.table import Cell, Column
from servewise.report.wording import UNKNOWN, figure, percent, rate, seconds, steps, within

_NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "itl_s": "ITL", "e2e_s": "E2E"}


def latency_columns(*, unit_step: bool = False) -> tuple[Column, ...]:
    """p50 and p95 of TTFT, and p95 of TPOT (``unit_step``: of end to end, in steps); the rest wide.

    Each with how far its 95% interval reaches, where that is known and there is room.
    """
    shown = ("ttft_s", "e2e_s") if unit_step else ("ttft_s", "tpot_s")
    write = steps if unit_step else seconds
    return tuple(
        value_column(
            f"{name} {at}", key, at, write, wide=key not in shown or (key, at) == ("tpot_s", "p50"), spread=at == "p95"
        )
        for key, name in _NAMES.items()
        for at in ("p50", "p95")
    )


def value_column(
    heading: str, key: str, at: str, write: Callable[[object], str], *, wide: bool = False, spread: bool = True
) -> Column:
    """The percentile ``at`` of the Percentiles document under ``key``, with its interval where ``spread``."""
    plain: Cell = lambda row: write(percentile(row.get(key), at))  # noqa: E731
    return Column(heading, _spread(key, at, plain) if spread else plain, wide=wide, brief=plain)


def _spread(key: str, at: str, plain: Cell) -> Cell:
    def cell(row: Row) -> str:
        reach = within(percentile(row.get(key), at), interval(row.get(key), at))
        return f"{plain(row)} {reach}".rstrip()

    return cell


def reached(value: Cell, found: Cell) -> Cell:
    """``value`` with what ``found`` says of its interval behind it."""
    return lambda row: f"{value(row)} {found(row)}".rstrip()


def pair_within(row: Row, key: str) -> str:
    """How far the interval ``ci95_<key>`` of a plain value reaches."""
    ends = [number(each) for each in items(row.get(f"ci95_{key}"))]
    low, high = ends if len(ends) == 2 else (None, None)
    return "" if low is None or high is None else within(row.get(key), (low, high))


def throughput_columns(per: str = "s") -> tuple[Column, ...]:
    """Output tokens and goodput per ``per`` (s or step), utilisation and counts."""
    return (
        rate_column(f"Tokens/{per}", "output_tokens_per_s"),
        rate_column("Goodput", "goodput_per_s"),
        Column("Use", lambda row: percent(row.get("utilisation")), wide=True),
        Column("Completed", lambda row: figure(row.get("completed")), wide=True),
        Column("Rejected", lambda row: figure(row.get("rejected")), wide=True),
        Column("Preempted", lambda row: figure(row.get("preemptions")), wide=True),
    )


def rate_column(heading: str, key: str, *, wide: bool = False) -> Column:
    """A rate with how far its 95% interval reaches, where that is known and there is room."""
    plain: Cell = lambda row: rate(row.get(key))  # noqa: E731
    return Column(heading, reached(plain, lambda row: pair_within(row, key)), wide=wide, brief=plain)


def standing(row: Row) -> str:
    """Bad for a row that never settles, none otherwise."""
    return "bad" if row.get("stable") is False else ""


def policy(row: Row) -> str:
    """The row's policy, marked where its latencies grow with the length of the run."""
    mark = " *" if row.get("stable") is False else ""
    return text(row.get("policy"), UNKNOWN) + mark
