"""Tables of ``calibrate``: what the runs told of a server, what they did not, and how far it is off by load."""

from __future__ import annotations

from collections.abc import Mapping

from servewise.report.reading import Row, items, mapping, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import UNKNOWN, count, figure, percent, seconds

ERRORS = "Error by load"
_NAMES = {
    "step_s": "Overhead of a step",
    "sequence_s": "Overhead of a sequence",
    "weight_efficiency": "Bandwidth reached on weights",
    "flop_efficiency": "FLOP/s reached in products",
    "ramp_tokens": "Rows at half that rate",
    "kv_efficiency": "Bandwidth reached on KV",
    "attention_efficiency": "FLOP/s reached on prompts' attention",
    "request_s": "Request outside of steps",
}
_RANGES = {
    "decode_sequences": "Sequences decoding at once",
    "context_tokens": "Tokens of context a sequence",
    "prefill_tokens": "Prompt tokens a step",
    "tensor": "Tensor-parallel ranks",
}


def tables(result: Row) -> tuple[Table, ...]:
    """The coefficients; those that the runs cannot tell; errors by load; the range."""
    return (coefficients(result), untold(result), errors(result), _range(result))


def coefficients(result: Row) -> Table:
    """Those that were told, with their intervals."""
    columns = (
        Column("Coefficient", lambda row: text(row.get("title")), prose=True),
        Column("Value", lambda row: _value(row["name"], row.get("value"))),
        Column("95% interval", _interval),
    )
    told = [row for row in _all(result) if number(row.get("value")) is not None]
    return build("What the runs tell of the server", columns, told)


def untold(result: Row) -> Table:
    """Those that were not, with what is taken in their place."""
    columns = (
        Column("Not told", lambda row: text(row.get("title")), prose=True),
        Column("Taken", lambda row: _value(row["name"], row.get("assumed"))),
        Column("Why", lambda row: text(row.get("why"), UNKNOWN), prose=True),
    )
    left = [row for row in _all(result) if number(row.get("value")) is None]
    return build("What they cannot tell", columns, left)


def errors(result: Row) -> Table:
    """|predicted / measured - 1|: of what was fitted, held out, and by a fit on the other runs."""
    columns = (
        Column("Run", lambda row: text(row.get("load"), UNKNOWN), prose=True),
        Column("Fitted", lambda row: _error(row, "train")),
        Column("Held out", lambda row: _error(row, "heldout")),
        Column("By the other runs", lambda row: _error(row, "left_out")),
    )
    whole = {"load": "all", "train": result.get("train_error"), "heldout": result.get("heldout_error")}
    note = "Median and 90th percentile. 'By the other runs': a fit that did not see this one."
    return build(ERRORS, columns, [*rows(result, "by_load"), whole], note=note)


def _range(result: Row) -> Table:
    columns = (
        Column("Holds for", lambda row: text(row.get("title")), prose=True),
        Column("From", lambda row: count(row.get("low"))),
        Column("To", lambda row: count(row.get("high"))),
    )
    valid = mapping(result.get("valid_range"))
    pairs = [(title, items(valid.get(name))) for name, title in _RANGES.items()]
    found = [{"title": title, "low": pair[0], "high": pair[1]} for title, pair in pairs if len(pair) == 2]
    return build("Where it holds", columns, found)


def _all(result: Row) -> list[dict[str, object]]:
    known: Mapping[str, object] = mapping(result.get("coefficients"))
    return [
        {"name": name, "title": title, **mapping(known.get(name))} for name, title in _NAMES.items() if name in known
    ]


def _value(name: object, value: object) -> str:
    words = str(name)
    if words.endswith("_s"):
        return seconds(value)
    return percent(value) if words.endswith("_efficiency") else figure(value)


def _interval(row: Row) -> str:
    pair = items(row.get("ci95"))
    return f"{_value(row['name'], pair[0])} to {_value(row['name'], pair[1])}" if len(pair) == 2 else UNKNOWN


def _error(row: Row, key: str) -> str:
    found = mapping(row.get(key))
    if number(found.get("median")) is None:
        return UNKNOWN
    return f"{percent(found.get('median'))}, {percent(found.get('p90'))}"
