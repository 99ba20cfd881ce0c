"""Tables of ``fleet``: latencies by layout and router, splits against mixed, what each replica did, what it costs."""

from __future__ import annotations

from servewise.report.reading import Row, mapping, rows, text
from servewise.report.table import Cell, Column, Table, build
from servewise.report.tables.drafts import drafts_table
from servewise.report.tables.latency import latency_columns, standing, throughput_columns
from servewise.report.tables.phases import phases_table
from servewise.report.wording import UNKNOWN, count, dollars, figure, percent, seconds, size, times

LATENCY = "Latency by layout and router"
EACH = "Each replica, first seed"
_UNSTABLE = "* unstable: its latencies grow with the length of the run."
_CHANGES = (("ttft_p95", "TTFT p95"), ("tpot_p95", "TPOT p95"), ("e2e_p95", "E2E p95"), ("goodput", "Goodput"))


def tables(result: Row) -> tuple[Table, ...]:
    """The rows, splits over mixed, transfers, where time went, what speculation gave, the cost, and the replicas."""
    named = dict(result) | {"rows": [dict(row) | {"policy": name(row)} for row in rows(result, "rows")]}
    return (
        _latencies(result),
        _against(result),
        _transfers(result),
        *phases_table(named),
        *drafts_table(named),
        _cost(result),
        _each(result),
    )


def name(row: Row) -> str:
    """The layout and the router: ``2P2D, least-loaded``."""
    return f"{text(row.get('layout'), UNKNOWN)}, {text(row.get('router'), UNKNOWN)}"


def _layout(row: Row) -> str:
    return name(row) + (" *" if row.get("stable") is False else "")


def _columns(first: Column) -> tuple[Column, Column]:
    return first, Column("Rate/s", lambda row: figure(row.get("rate_per_s")))


def _latencies(result: Row) -> Table:
    found = rows(result, "rows")
    columns = (
        *_columns(Column("Layout", _layout, prose=True)),
        *latency_columns(),
        *throughput_columns(),
        Column("Cached", lambda row: percent(row.get("prefix_hit_rate")), wide=True),
        Column("Retried", lambda row: figure(row.get("retried")), wide=True),
        Column("Failed", lambda row: figure(row.get("failed")), wide=True),
    )
    note = _UNSTABLE if any(row.get("stable") is False for row in found) else ""
    return build(LATENCY, columns, found, note=note, marks=standing, grouped=True)


def _against(result: Row) -> Table:
    found = [row for row in rows(result, "rows") if mapping(row.get("against_mixed"))]
    changes = (Column(title, _change(key)) for key, title in _CHANGES)
    columns = (*_columns(Column("Split", name, prose=True)), *changes)
    return build("Prefill and decode apart, over as many mixed replicas", columns, found)


def _change(key: str) -> Cell:
    return lambda row: times(mapping(row.get("against_mixed")).get(key))


def _transfers(result: Row) -> Table:
    found = [row for row in rows(result, "rows") if mapping(row.get("transfers"))]
    columns = (
        *_columns(Column("Split", name, prose=True)),
        Column("Moved", lambda row: count(mapping(row.get("transfers")).get("count"))),
        Column("Mean size", lambda row: size(mapping(row.get("transfers")).get("mean_bytes"))),
        Column("Sending", lambda row: seconds(mapping(row.get("transfers")).get("mean_sending_s"))),
        Column("Wait for the link", lambda row: seconds(mapping(row.get("transfers")).get("mean_waited_s"))),
    )
    return build("KV caches on their way", columns, found)


def _cost(result: Row) -> Table:
    columns = (
        *_columns(Column("Layout", name, prose=True)),
        Column("Replica-hours", lambda row: figure(row.get("replica_hours"))),
        Column("Accelerator-hours", lambda row: figure(row.get("accelerator_hours")), wide=True),
        Column("Cost", lambda row: dollars(row.get("usd"))),
        Column("$/M output tokens", lambda row: dollars(row.get("usd_per_million_output_tokens"))),
    )
    return build("What the run costs", columns, rows(result, "rows"))


def _each(result: Row) -> Table:
    columns = (
        *_columns(Column("Layout", name, prose=True)),
        Column("Replica", lambda row: f"r{figure(row.get('replica'))} {text(row.get('role'))}", prose=True),
        Column("Hardware", lambda row: text(row.get("hardware"), UNKNOWN), prose=True, wide=True),
        Column("Prompts", lambda row: count(row.get("computed_prompt_tokens"))),
        Column("Ended", lambda row: count(row.get("requests"))),
        Column("Tokens", lambda row: count(row.get("output_tokens"))),
        Column("Busy", lambda row: percent(row.get("busy"))),
        Column("Use", lambda row: percent(row.get("utilisation")), wide=True),
        Column("Cached", lambda row: percent(row.get("prefix_hit_rate")), wide=True),
        Column("There", lambda row: seconds(row.get("paid_s")), wide=True),
    )
    note = "Prompts are tokens that it computed; requests and their tokens stand where they ended."
    return build(EACH, columns, rows(result, "replicas"), note=note, grouped=True)
