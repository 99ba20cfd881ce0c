"""Tables of ``probe quantise``: the cheapest setting of each target, the study's table, all settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from servewise.report.reading import Row, items, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.wording import count, figure, percent, size, times

_TARGETS = {"weights": "weights", "kv": "KV", "activations": "activations"}
_GRIDS = {"symmetric": "sym", "asymmetric": "asym"}
_SETTING = ("target", "bits", "group", "grid", "method", "keys")


def tables(result: Row) -> tuple[Table, ...]:
    """The cheapest settings, then the study's table, then every setting."""
    best = rows(result, "cheapest")
    chosen = {_key(row) for row in best}
    title = f"Cheapest under a KL of {figure(result.get('threshold_kl'))}"
    note = (
        "KL from the model as it is, nats a position, over resampled sequences; top-1: the most likely token is the "
        "same; perplexity over the model's own; size: all weights, or the cache a token. Packed: the engine keeps only "
        "these bits; emulated: exact, saves nothing here."
    )
    return (
        build(title, _COLUMNS, best, note="By the upper end of its interval."),
        _study(result),
        build(
            "Every setting",
            _COLUMNS,
            rows(result, "rows"),
            note=note,
            marks=lambda row: "good" if _key(row) in chosen else "",
            grouped=True,
        ),
    )


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in _SETTING)


def _setting(row: Row) -> str:
    """E.g. ``weights int4 g32 asym gptq``, ``KV int4 asym keys/channel``."""
    target, group = text(row.get("target")), row.get("group")
    parts = (
        _TARGETS.get(target, target),
        f"int{count(row.get('bits'))}",
        f"g{count(group)}" if number(group) is not None else "",
        _GRIDS.get(text(row.get("grid")), text(row.get("grid"))),
        text(row.get("method")) if target == "weights" else "",
        f"keys/{text(row.get('keys'))}" if row.get("keys") else "",
    )
    return " ".join(part for part in parts if part)


def _size(row: Row) -> str:
    kept = row.get("kv_bytes_per_token")
    return size(row.get("weight_bytes") if kept is None else kept)


def _study(result: Row) -> Table:
    columns = (
        Column("Target", lambda row: text(row.get("target")).removesuffix(" cache"), prose=True),
        Column("Bits", lambda row: count(row.get("bits"))),
        Column("KL, study", lambda row: figure(row.get("study_kl"))),
        Column("KL, here", lambda row: figure(row.get("kl"))),
        Column("95% interval", lambda row: _interval(row.get("ci95_kl"), figure), wide=True),
        Column("Top-1, study", lambda row: percent(row.get("study_top1_agreement"))),
        Column("Top-1, here", lambda row: percent(row.get("top1_agreement"))),
        Column("95% interval", lambda row: _interval(row.get("ci95_top1_agreement"), percent), wide=True),
    )
    note = (
        "Symmetric, nearest; a scale for each output (weights), token and head (KV cache). The study's model is random."
    )
    return build("The study's table on this model", columns, rows(result, "study"), note=note)


def _interval(value: object, word: Callable[[object], str]) -> str:
    ends = items(value)
    return f"{word(ends[0])} – {word(ends[1])}" if len(ends) == 2 else "–"


_COLUMNS: Sequence[Column] = (
    Column("Setting", _setting, prose=True),
    Column("KL", lambda row: figure(row.get("kl"))),
    Column("95% interval", lambda row: _interval(row.get("ci95_kl"), figure)),
    Column("Top-1", lambda row: percent(row.get("top1_agreement"))),
    Column("Perplexity", lambda row: times(row.get("perplexity_ratio"))),
    Column("Exact match", lambda row: percent(row.get("exact_match")), wide=True),
    Column("Size", _size),
    Column("Runs", lambda row: text(row.get("runs")), prose=True, wide=True),
)
