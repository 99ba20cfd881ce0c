"""Tables of ``experiment serve-small``: servers side by side, part by part."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.report.reading import Row, mapping, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.tables.latency import latency_columns
from servewise.report.wording import UNKNOWN, count, percent, rate, seconds

BUILDS, PREFIX = "Servers and builds by load", "A shared prefix, its cache off and on"


def _bandwidth(row: Row) -> str:
    found = number(row.get("bandwidth_bytes_per_s"))
    return UNKNOWN if found is None else f"{rate(found / 1e9)} GB/s"


_HEAD = (
    Column("Server", lambda row: text(row.get("server"), UNKNOWN), prose=True),
    Column("Version", lambda row: text(row.get("version"), UNKNOWN), prose=True, wide=True),
    Column("Weights", lambda row: text(row.get("weights"), UNKNOWN), prose=True),
)
_STREAMS = Column("Streams", lambda row: count(row.get("concurrency")) + ("*" if row.get("partial") is True else ""))
_MACHINE = (
    Column("Memory bandwidth", _bandwidth, wide=True),
    Column("Cores held by others", lambda row: percent(row.get("others_share")), wide=True),
)


def tables(result: Row) -> tuple[Table, ...]:
    """Builds by load; the prefix cache off and on; batching policies measured, with the simulator's prediction."""
    found = rows(result, "rows")
    return (
        _builds([row for row in found if row.get("part") in ("16-bit", "quantised")]),
        _prefix([row for row in found if row.get("part") == "prefix"]),
        _batching([row for row in found if row.get("part") == "batching"]),
    )


def _rest() -> tuple[Column, ...]:
    return (
        *latency_columns(),
        Column("Tokens/s", lambda row: rate(row.get("output_tokens_per_s"))),
        Column("Requests", lambda row: count(row.get("completed")), wide=True),
        Column("Errors", lambda row: count(row.get("errors"))),
        *_MACHINE,
    )


def _builds(found: Sequence[Row]) -> Table:
    note = "128 tokens in, 64 out, prefix cache off." + _cut_off(found)
    return build(BUILDS, (*_HEAD, _STREAMS, *_rest()), found, note=note, grouped=True)


def _cut_off(found: Sequence[Row]) -> str:
    return " * cut off: what had ended by then." if any(row.get("partial") is True for row in found) else ""


def _prefix(found: Sequence[Row]) -> Table:
    columns = (
        *_HEAD[:2],
        Column("Prefix cache", lambda row: "on" if row.get("prefix_cache") is True else "off", prose=True),
        _STREAMS,
        Column("Cached", lambda row: percent(row.get("cached_share"))),
        *_rest(),
    )
    note = "512 shared tokens and 128 of its own in each prompt, 64 out; the cache knew the shared part before."
    note += _cut_off(found)
    return build(PREFIX, columns, found, note=note, grouped=True)


def _batching(found: Sequence[Row]) -> Table:
    columns = (
        *_HEAD[:2],
        Column("Batching", lambda row: text(row.get("batching"), UNKNOWN), prose=True),
        _STREAMS,
        *_rest()[:-2],
        Column("Predicted tokens/s", lambda row: rate(mapping(row.get("predicted")).get("output_tokens_per_s"))),
        Column("Predicted E2E p50", lambda row: seconds(mapping(row.get("predicted")).get("e2e_p50_s"))),
    )
    note = "Answers of 16 to 112 tokens. None: llama.cpp's --no-cont-batching, which starts no prompt while others run."
    return build("Batching policies", columns, found, note=note, grouped=True)
