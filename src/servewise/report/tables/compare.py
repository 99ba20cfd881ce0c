"""Tables of ``compare``: two runs side by side, what was claimed and gated, and where their conditions differ."""

from __future__ import annotations

from servewise.report.reading import Row, distinct, items, mapping, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import UNKNOWN, by_key, count, percent, seconds, times

_NAMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E"}
_RATES = {
    "utilisation": "Utilisation",
    "requests_per_s": "Requests/s",
    "output_tokens_per_s": "Output tokens/s",
    "goodput_per_s": "Goodput/s",
}
_MARKS = {"better": "good", "worse": "bad", "reproduced": "good", "refuted": "bad"}


def tables(result: Row) -> tuple[Table, ...]:
    """Claims and gates first, then each metric of A and B, how they were compared, and how their conditions differ."""
    return (_claims(result), _gates(result), *_metrics(result), _ways(result), _differences(result))


def metric_name(metric: object) -> str:
    """``ttft_p95`` as people write it.

    >>> metric_name("ttft_p95"), metric_name("output_tokens_per_s")
    ('TTFT p95', 'Output tokens/s')
    """
    words = text(metric, UNKNOWN)
    latency, _, at = words.partition("_")
    return _RATES.get(words) or (f"{_NAMES[latency]} {at}" if latency in _NAMES else words)


def metric_value(metric: object, value: object) -> str:
    """A metric's value in its unit."""
    words = text(metric)
    if words.partition("_")[0] in _NAMES:
        return seconds(value)
    return percent(value) if words == "utilisation" else by_key(words, value)


def ratio(value: object) -> str:
    """A ratio with two digits at least.

    >>> ratio(1.386), ratio(0.0123)
    ('1.39×', '0.012×')
    """
    found = number(value)
    return f"{found:#.2g}×" if found is not None and 0 < abs(found) < 0.1 else times(value)


def interval(row: Row, key: str = "ci95") -> str:
    """A ratio's interval in words."""
    pair = [number(each) for each in items(row.get(key))]
    return f"{ratio(pair[0])} to {ratio(pair[1])}" if len(pair) == 2 and None not in pair else UNKNOWN


def _metrics(result: Row) -> list[Table]:
    """A table for each load, in the order of the rows."""
    columns = (
        Column("Metric", lambda row: metric_name(row.get("metric")), prose=True),
        Column("A", lambda row: metric_value(row.get("metric"), row.get("a"))),
        Column("B", lambda row: metric_value(row.get("metric"), row.get("b"))),
        Column("B / A", lambda row: ratio(row.get("ratio"))),
        Column("95% interval", interval),
        Column("Verdict", lambda row: text(row.get("verdict"), UNKNOWN), prose=True),
    )
    note = " ".join(filter(None, (_side(name, result.get(name.lower())) for name in "AB")))
    found = rows(result, "rows")
    loads = distinct([text(row.get("condition")) for row in found])
    return [
        build(
            f"A against B: {load}" if load else "A against B",
            columns,
            [row for row in found if text(row.get("condition")) == load],
            note=note if load == loads[-1] else "",
            marks=_mark,
        )
        for load in loads
    ]


def _side(name: str, side: object) -> str:
    found = mapping(side)
    kind = text(found.get("kind"))
    return f"{name}: {text(found.get('name'))}{f' ({kind})' if kind else ''}." if found.get("name") else ""


def _claims(result: Row) -> Table:
    columns = (
        Column("Load", lambda row: text(row.get("condition")), prose=True),
        Column("Claim", lambda row: f"{metric_name(row.get('metric'))} {times(row.get('claimed'))}", prose=True),
        Column("Measured", lambda row: ratio(row.get("speedup"))),
        Column("95% interval", interval),
        Column("Verdict", lambda row: text(row.get("verdict"), UNKNOWN), prose=True),
    )
    found = rows(result, "claims")
    tolerance = percent(found[0].get("tolerance")) if found else ""
    note = f"Kept where the speed-up is at most {tolerance} below the claim." if found else ""
    return build("What was claimed", columns, found, note=note, marks=_mark)


def _gates(result: Row) -> Table:
    columns = (
        Column("Load", lambda row: text(row.get("condition")), prose=True),
        Column("Fails if", lambda row: _gate(row.get("gate")), prose=True),
        Column("Change", lambda row: _change(row.get("change"))),
        Column("Verdict", lambda row: "fails" if row.get("fails") is True else "holds", prose=True),
        Column("Beyond doubt", lambda row: "yes" if row.get("certain") is True else "no", prose=True),
    )
    return build("Gates", columns, rows(result, "gates"), marks=_gate_mark)


def _gate(value: object) -> str:
    metric, _, rest = text(value, UNKNOWN).partition(" ")
    return f"{metric_name(metric)} {rest}".strip()


def _change(value: object) -> str:
    found = number(value)
    return UNKNOWN if found is None else f"{100 * found:+.1f}%"


def _gate_mark(row: Row) -> str:
    return "bad" if row.get("fails") is True else "good"


def _ways(result: Row) -> Table:
    columns = (
        Column("Load", lambda row: text(row.get("condition")), prose=True),
        Column("Compared", _way, prose=True),
        Column("Completed in A", lambda row: count(row.get("completed_a"))),
        Column("Completed in B", lambda row: count(row.get("completed_b"))),
    )
    return build("How they were compared", columns, rows(result, "conditions"))


def _way(row: Row) -> str:
    if row.get("paired") is True:
        return f"{count(row.get('pairs'))} requests, one by one"
    why = text(row.get("why_not_paired"))
    return f"as independent runs: {why}" if why else "as independent runs"


def _differences(result: Row) -> Table:
    columns = (
        Column("Condition", lambda row: text(row.get("condition"), UNKNOWN), prose=True),
        Column("A", lambda row: text(row.get("a"), UNKNOWN), prose=True),
        Column("B", lambda row: text(row.get("b"), UNKNOWN), prose=True),
    )
    return build("What else differs", columns, rows(result, "differences"))


def _mark(row: Row) -> str:
    return _MARKS.get(text(row.get("verdict")), "")
