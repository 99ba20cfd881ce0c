"""Tables of ``size``: does it fit, what takes the memory, how many sequences, what the engine's log said."""

from __future__ import annotations

from servewise.report.reading import Row, number, positive, rows, text
from servewise.report.table import Column, Table, build, facts
from servewise.report.tables.precision import precisions
from servewise.report.wording import UNKNOWN, count, percent, size


def tables(result: Row) -> tuple[Table, ...]:
    """The verdict with its figures, the memory's parts, sequences by context, the log's reconciliation, precisions."""
    return (_verdict(result), _breakdown(result), _sequences(result), _reconciliation(result), precisions(result))


def verdict(result: Row) -> str:
    """Fits, does not fit, or not known."""
    if result.get("fits") is False:
        return "does not fit"
    return "fits" if result.get("fits") is True else UNKNOWN


def _verdict(result: Row) -> Table:
    sequences = count(result.get("max_sequences"))
    context = number(result.get("context_tokens"))
    if context is not None and sequences != UNKNOWN:
        sequences += f" of {count(context)} tokens"
    pairs = [
        ("Verdict", verdict(result)),
        ("Short by, each accelerator", size(short) if (short := positive(result.get("short_by_bytes"))) else UNKNOWN),
        ("Memory, each accelerator", size(result.get("memory_bytes"))),
        ("Weights, each accelerator", size(result.get("weight_bytes"))),
        ("KV per token, each accelerator", size(result.get("kv_bytes_per_token"))),
        ("Left for the KV cache, each accelerator", size(result.get("kv_budget_bytes"))),
        (
            "KV cache of one replica",
            f"{count(result.get('kv_tokens'))} tokens" if _known(result, "kv_tokens") else UNKNOWN,
        ),
        ("Sequences at once", sequences),
    ]
    return facts("What fits", pairs)


def _known(result: Row, key: str) -> bool:
    return number(result.get(key)) is not None


def _breakdown(result: Row) -> Table:
    terms = [term for term in rows(result, "breakdown") if number(term.get("bytes"))]
    total = number(result.get("memory_bytes")) or sum(number(term.get("bytes")) or 0.0 for term in terms)
    columns = (
        Column("Part", lambda row: part_name(row.get("name")), prose=True),
        Column("Bytes", lambda row: size(row.get("bytes"))),
        Column("Share", lambda row: _share(row, total)),
        Column("How it was found", lambda row: text(row.get("note")), prose=True),
    )
    return build("Memory of one accelerator", columns, terms)


def part_name(name: object) -> str:
    """A part of the memory, as a label: capitalised."""
    words = text(name, UNKNOWN).replace("kv cache", "KV cache")
    return words[:1].upper() + words[1:]


def _share(row: Row, total: float) -> str:
    found = number(row.get("bytes"))
    return percent(found / total) if found is not None and total > 0 else UNKNOWN


def _sequences(result: Row) -> Table:
    columns = (
        Column("Context tokens", lambda row: count(row.get("context_tokens"))),
        Column("Sequences at once", lambda row: count(row.get("max_sequences"))),
    )
    return build("Sequences that fit by context", columns, rows(result, "sequences"))


def _reconciliation(result: Row) -> Table:
    columns = (
        Column("Term", lambda row: text(row.get("term"), UNKNOWN), prose=True),
        Column("Predicted", lambda row: size(row.get("predicted_bytes"))),
        Column("Logged", lambda row: size(row.get("logged_bytes"))),
        Column("Difference", lambda row: _signed(row.get("difference_bytes"))),
        Column("Note", lambda row: text(row.get("note")), prose=True),
    )
    return build("Against the engine's log", columns, rows(result, "reconciliation"))


def _signed(value: object) -> str:
    found = number(value)
    return UNKNOWN if found is None else f"{'+' if found > 0 else ''}{size(found)}"
