"""Tables of ``probe quantise``: the cheapest setting of each target, the study's table, all settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from servewise.report.reading import Row, items, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import count, figure, percent, size, times

_TARGETS = {"weights": "weights", "kv": "KV cache", "activations": "activations"}
_SETTING = ("target", "bits", "group", "grid", "method", "keys")


def tables(result: Row) -> tuple[Table, ...]:
    """The cheapest settings, then the study's table, then every setting."""
    threshold = figure(result.get("threshold_kl"))
    best = rows(result, "cheapest")
    chosen = {_key(row) for row in best}
    title = f"Cheapest under a KL of {threshold} (upper end of its interval)"
    note = (
        "KL from the model as it is, nats a position; top-1: the most likely token is the same; perplexity over the "
        "model's own. Packed: the engine keeps only these bits. Emulated: exact, saves nothing here."
    )
    return (
        build(title, _columns(best), best),
        _study(result),
        build(
            "Every setting",
            _columns(rows(result, "rows")),
            rows(result, "rows"),
            note=note,
            marks=lambda row: "good" if _key(row) in chosen else "",
            grouped=True,
        ),
    )


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in _SETTING)


def _columns(found: Sequence[Row]) -> tuple[Column, ...]:
    several = {str(row.get("keys")) for row in found} - {"None"}
    return (
        Column("Target", lambda row: _TARGETS.get(text(row.get("target")), text(row.get("target"))), prose=True),
        Column("Bits", lambda row: count(row.get("bits"))),
        Column("Group", _group, prose=True),
        Column("Grid", lambda row: _short(row.get("grid")), prose=True),
        Column("Method", lambda row: text(row.get("method")), prose=True),
        Column("Keys by", lambda row: text(row.get("keys"), "–"), prose=True, wide=not several),
        Column("KL", lambda row: figure(row.get("kl"))),
        Column("95% interval", lambda row: _interval(row.get("ci95_kl"), figure)),
        Column("Top-1", lambda row: percent(row.get("top1_agreement"))),
        Column("Perplexity", lambda row: times(row.get("perplexity_ratio"))),
        Column("Exact match", lambda row: percent(row.get("exact_match"))),
        Column("Weights", lambda row: size(row.get("weight_bytes"))),
        Column("KV a token", lambda row: size(row.get("kv_bytes_per_token"))),
        Column("Runs", lambda row: text(row.get("runs")), prose=True, wide=True),
    )


def _group(row: Row) -> str:
    group = row.get("group")
    if number(group) is not None:
        return count(group)
    return {"kv": "head", "activations": "token"}.get(text(row.get("target")), text(group))


def _short(grid: object) -> str:
    return {"symmetric": "sym", "asymmetric": "asym"}.get(text(grid), text(grid))


def _study(result: Row) -> Table:
    columns = (
        Column("Target", lambda row: text(row.get("target")), prose=True),
        Column("Bits", lambda row: count(row.get("bits"))),
        Column("KL, study", lambda row: figure(row.get("study_kl"))),
        Column("KL, here", lambda row: figure(row.get("kl"))),
        Column("95% interval", lambda row: _interval(row.get("ci95_kl"), figure)),
        Column("Top-1, study", lambda row: percent(row.get("study_top1_agreement"))),
        Column("Top-1, here", lambda row: percent(row.get("top1_agreement"))),
        Column("95% interval", lambda row: _interval(row.get("ci95_top1_agreement"), percent), wide=True),
    )
    note = "Symmetric, nearest; a scale for each output (weights), token and head (cache). The study's model is random."
    return build("The study's table on this model", columns, rows(result, "study"), note=note)


def _interval(value: object, word: Callable[[object], str]) -> str:
    ends = items(value)
    return f"{word(ends[0])} – {word(ends[1])}" if len(ends) == 2 else "–"
