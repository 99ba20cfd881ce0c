"""The table of ``precisions``, which several commands may give."""

from __future__ import annotations

from servewise.report.reading import Row, mapping, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import UNKNOWN, figure, rate, seconds, size


def precisions(result: Row) -> Table:
    """Bytes, speed and known quality of each precision."""
    columns = (
        Column("Precision", lambda row: text(row.get("name"), UNKNOWN), prose=True),
        Column("Weights", lambda row: size(row.get("weight_bytes"))),
        Column("KV per token", lambda row: size(row.get("kv_bytes_per_token"))),
        Column("Step", lambda row: seconds(row.get("step_s"))),
        Column("Tokens/s", lambda row: rate(row.get("tokens_per_s"))),
        Column("Quality", _quality, prose=True),
    )
    return build("Precision: bytes against speed", columns, rows(result, "precisions"))


def _quality(row: Row) -> str:
    quality = mapping(row.get("quality"))
    return f"{text(quality.get('metric'))} {figure(quality.get('value'))}" if quality else UNKNOWN
