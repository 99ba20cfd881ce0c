"""Tables of answers side by side: a metric a row, each answer's value, and its ratio to the first's."""

from __future__ import annotations

from servewise.report.reading import Row, distinct, items, number, rows, text
from servewise.report.table import Cell, Column, Table, build
from servewise.report.tables.compare import metric_name, ratio
from servewise.report.wording import UNKNOWN, by_key, dollars, percent, within

_NAMES = {
    "output_tokens_per_s": "Output tokens/s",
    "usd_per_million_output_tokens": "$/M output tokens",
    "max_rate_per_s": "Max rate/s",
    "accelerators": "Accelerators",
    "step_s": "Step",
    "tokens_per_s": "Tokens/s",
    "weight_bytes": "Weights",
    "kv_bytes_per_token": "KV per token",
    "kv_tokens": "KV tokens",
    "max_sequences": "Sequences at once",
    "best_k": "Draft tokens",
    "speedup": "Speed-up",
    "hit_rate": "Reused",
    "cost_usd": "Cost, no cache",
    "cost_with_cache_usd": "Cost, cached",
}


def tables(result: Row) -> tuple[Table, ...]:
    """A table for each row of the answers that both have: a load, a batch."""
    found = rows(result, "rows")
    places = distinct([text(row.get("at")) for row in found])
    columns = _columns([text(name, UNKNOWN) for name in items(result.get("names"))])
    return tuple(
        build(f"Side by side: {place}" if place else "Side by side", columns, [
            row for row in found if text(row.get("at")) == place
        ])
        for place in places
    )  # fmt: skip


def _columns(names: list[str]) -> tuple[Column, ...]:
    values = [Column(name, _value(place)) for place, name in enumerate(names)]
    first = names[0] if names else ""
    ratios = [
        Column(f"over {first}" if len(names) == 2 else f"{name} over {first}", _ratio(place), brief=_plain(place))
        for place, name in enumerate(names)
        if place
    ]
    return (Column("Metric", measure_name, prose=True), *values, *ratios)


def measure_name(row: Row) -> str:
    """The row's metric as people write it: Weights, TTFT p95."""
    key, at = text(row.get("metric")), text(row.get("percentile"))
    return _NAMES.get(key) or metric_name(f"{key.removesuffix('_s')}_{at}" if at else key)


def _value(place: int) -> Cell:
    def cell(row: Row) -> str:
        key, found = text(row.get("metric")), items(row.get("values"))
        value = found[place] if place < len(found) else None
        if key.startswith("usd_per") or key.endswith("_usd"):
            return dollars(value)
        return (
            percent(value) if key == "hit_rate" else by_key("kv_bytes" if key == "kv_bytes_per_token" else key, value)
        )

    return cell


def _plain(place: int) -> Cell:
    return lambda row: ratio(_at(row, "ratios", place))


def _ratio(place: int) -> Cell:
    def cell(row: Row) -> str:
        pair = [number(end) for end in items(_at(row, "ci95", place))]
        low, high = pair if len(pair) == 2 else (None, None)
        spread = "" if low is None or high is None else within(_at(row, "ratios", place), (low, high))
        return f"{_plain(place)(row)} {spread}".rstrip()

    return cell


def _at(row: Row, key: str, place: int) -> object:
    found = items(row.get(key))
    return found[place] if place < len(found) else None
