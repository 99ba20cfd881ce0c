"""Tables of ``probe ops``: what the machine reaches, and the times of operations and steps."""

from __future__ import annotations

from servewise.report.reading import Row, mapping, number, rows, text
from servewise.report.table import Column, Table, build, facts
from servewise.report.wording import UNKNOWN, count, percent, rate, seconds, size


def tables(result: Row) -> tuple[Table, ...]:
    """The machine, then memory, products, attention and steps."""
    return (
        _machine(result),
        build("Memory", _columns(("Working set", "working_set_bytes", size)), rows(result, "memory")),
        build("Matrix products", _columns(*_PRODUCT), rows(result, "products"), note=_NOTE),
        build("Attention of one layer", _columns(*_ATTENTION), rows(result, "attention")),
        _steps(result),
    )


_PRODUCT = (("Tokens", "tokens", count), ("In", "inputs", count), ("Out", "outputs", count))
_ATTENTION = (("Batch", "batch", count), ("New", "new_tokens", count), ("Context", "context_tokens", count))
_NOTE = "A call goes round as many copies of the weights as the model has layers. * disturbed by other programs."


def _machine(result: Row) -> Table:
    machine = mapping(result.get("machine"))
    pairs = [
        ("Machine", text(machine.get("title"), UNKNOWN)),
        ("Threads", count(machine.get("threads"))),
        ("Memory", size(machine.get("memory_bytes"))),
        ("Bandwidth reached", _rate(result.get("bandwidth_bytes_per_s"), "B/s")),
    ]
    peaks = rows(result, "peaks")
    pairs += [(f"Peak reached in {text(row.get('dtype'))}", _rate(row.get("flops_per_s"), "FLOP/s")) for row in peaks]
    return facts("What this machine reaches", pairs)


def _columns(*sizes: tuple[str, str, object]) -> tuple[Column, ...]:
    return (
        Column("Operation", lambda row: text(row.get("name"), UNKNOWN), prose=True),
        Column("dtype", lambda row: text(row.get("dtype"), UNKNOWN), prose=True),
        *(_sized(heading, key, word) for heading, key, word in sizes),
        Column("Median", lambda row: seconds(row.get("median_s"))),
        Column("Spread", _spread),
        Column("GB/s", lambda row: _scaled(row.get("bytes_per_s"), 1e9)),
        Column("GFLOP/s", lambda row: _scaled(row.get("flops_per_s"), 1e9)),
        Column("Samples", lambda row: count(row.get("samples")), wide=True),
        Column("Disturbed", lambda row: count(row.get("disturbed_samples")), wide=True),
    )


def _sized(heading: str, key: str, word: object) -> Column:
    assert callable(word)
    return Column(heading, lambda row: str(word(row.get(key))))


def _steps(result: Row) -> Table:
    columns = (
        Column("Phase", lambda row: text(row.get("phase"), UNKNOWN), prose=True),
        Column("Batch", lambda row: count(row.get("batch"))),
        Column("Context", lambda row: count(row.get("context_tokens"))),
        Column("Step", lambda row: seconds(row.get("step_s"))),
        Column("Spread", lambda row: _spread(row, "step_s")),
        Column("Samples", lambda row: count(row.get("samples")), wide=True),
        Column("Disturbed", lambda row: count(row.get("disturbed_samples")), wide=True),
    )
    note = "The network alone: an engine adds planning and sampling. Prefill: a whole prompt. * disturbed."
    return build("Steps of the engine's model", columns, rows(result, "steps"), note=note, grouped=True)


def _spread(row: Row, key: str = "median_s") -> str:
    median, low, high = number(row.get(key)), number(row.get("p10_s")), number(row.get("p90_s"))
    if not median or low is None or high is None:
        return UNKNOWN
    return percent((high - low) / median) + ("" if row.get("undisturbed") is True else " *")


def _rate(value: object, unit: str) -> str:
    found = number(value)
    if found is None:
        return UNKNOWN
    scale, prefix = next(((scale, prefix) for scale, prefix in ((1e12, "T"), (1e9, "G")) if found >= scale), (1e6, "M"))
    return f"{found / scale:.3g} {prefix}{unit}"


def _scaled(value: object, unit: float) -> str:
    found = number(value)
    return UNKNOWN if found is None else rate(found / unit)
