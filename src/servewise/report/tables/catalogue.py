"""Tables of ``catalogue``: names with the numbers that tell them apart."""

from __future__ import annotations

from servewise.report.reading import Row, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import UNKNOWN, count, size
from servewise.units import TERA, format_count


def tables(result: Row) -> tuple[Table, ...]:
    """Models, accelerators, workloads."""
    return (_models(result), _accelerators(result), _workloads(result))


def _models(result: Row) -> Table:
    columns = (
        Column("Model", lambda row: text(row.get("name"), UNKNOWN), prose=True),
        Column("Parameters", lambda row: format_count(number(row.get("parameters")) or 0)),
        Column("Active", lambda row: format_count(number(row.get("active_parameters")) or 0)),
        Column("KV a token", lambda row: size(row.get("kv_bytes_per_token"))),
        Column("Context", lambda row: count(row.get("context_tokens"))),
    )
    return build("Models", columns, rows(result, "models"))


def _accelerators(result: Row) -> Table:
    columns = (
        Column("Accelerator", lambda row: text(row.get("name"), UNKNOWN), prose=True),
        Column("Title", lambda row: text(row.get("title"), UNKNOWN), prose=True),
        Column("Memory", lambda row: size(row.get("memory_bytes"))),
        Column("TB/s", lambda row: f"{(number(row.get('bandwidth_bytes_per_s')) or 0) / TERA:.2f}"),
        Column("bf16 TFLOP/s", lambda row: f"{(number(row.get('bf16_peak_flops')) or 0) / TERA:,.0f}"),
    )
    return build("Accelerators", columns, rows(result, "accelerators"))


def _workloads(result: Row) -> Table:
    columns = (
        Column("Workload", lambda row: text(row.get("name"), UNKNOWN), prose=True),
        Column("File", lambda row: text(row.get("file"), UNKNOWN), prose=True),
    )
    return build("Workloads", columns, rows(result, "workloads"))
