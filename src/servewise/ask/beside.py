"""Answers of one command side by side: each metric of each, its ratio to the first's, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from servewise.answer import Answer
from servewise.ask.differing import side_by_side
from servewise.caveats import Caveat, unique
from servewise.metrics.comparison import ratio_interval

_LOADED = (
    ("ttft_s", "p50"), ("ttft_s", "p95"), ("tpot_s", "p50"), ("tpot_s", "p95"), ("output_tokens_per_s", ""),
    ("goodput_per_s", ""), ("usd_per_million_output_tokens", ""),
)  # fmt: skip
_MEASURES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "bench": _LOADED,
    "simulate": _LOADED,
    "fleet": _LOADED,
    "plan": (
        ("max_rate_per_s", ""), ("usd_per_million_output_tokens", ""), ("ttft_s", "p95"), ("tpot_s", "p95"),
        ("accelerators", ""),
    ),
    "steptime": (("step_s", ""), ("tokens_per_s", "")),
    "size": (("weight_bytes", ""), ("kv_bytes_per_token", ""), ("kv_tokens", ""), ("max_sequences", "")),
    "speculate": (("best_k", ""), ("speedup", "")),
    "prefix": (("hit_rate", ""), ("cost_usd", ""), ("cost_with_cache_usd", "")),
}  # fmt: skip
_ROWS = {"bench": "rows", "simulate": "rows", "fleet": "rows", "plan": "ranking", "steptime": "rows"}
_TOLD_BY = ("layout", "router", "policy", "concurrency", "sessions", "rate_per_s", "batch", "context_tokens")
Value = tuple[float, tuple[float, float] | None]
Found = Mapping[tuple[str, str, str], Value]


def beside(answers: Mapping[str, Answer]) -> Answer | None:
    """``answers`` of one command by name; None where they have no number in common.

    A ratio is of each to the first; its interval (where both have one) takes them as independent
    (``metrics.comparison.ratio_interval``). Of a plan the winner is compared.
    """
    found = [_numbers(answer) for answer in answers.values()]
    shared = [key for key in found[0] if all(key in each for each in found)]
    if not shared:
        return None
    caveats = (
        Caveat(each.code, f"{name}: {each.message}", each.cure)
        for name, answer in answers.items()
        for each in answer.caveats
    )
    return Answer(
        "beside",
        side_by_side({name: answer.conditions for name, answer in answers.items()}),
        {"names": list(answers), "rows": [_row(key, [each[key] for each in found]) for key in shared]},
        unique(tuple(caveats)),
    )


def _numbers(answer: Answer) -> Found:
    """The answer's numbers by (what row, metric, percentile)."""
    measures, result = _MEASURES.get(answer.command, ()), answer.result
    rows = result.get(_ROWS[answer.command], ()) if answer.command in _ROWS else (result,)
    if answer.command == "plan":
        return dict(_of_row("", next(iter(rows), {}), measures))
    return {key: value for row in rows for key, value in _of_row(_told(row), row, measures)}


def _told(row: Mapping[str, Any]) -> str:
    """What tells the row from the answer's others."""
    parts = ((name, row.get(name)) for name in _TOLD_BY)
    return ", ".join(_part(name, value) for name, value in parts if isinstance(value, (str, int, float)))


def _part(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    unit = {"concurrency": " streams", "sessions": " sessions", "rate_per_s": "/s", "context_tokens": " tokens"}
    return f"batch {value}" if name == "batch" else f"{value:g}{unit[name]}"


def _of_row(
    told: str, row: Mapping[str, Any], measures: Sequence[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str, str], Value]]:
    for key, at in measures:
        place: Any = row.get(key) if at else row
        name = at or key
        value = place.get(name) if isinstance(place, Mapping) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            yield (told, key, at), (float(value), _interval(place.get(f"ci95_{name}")))


def _interval(pair: object) -> tuple[float, float] | None:
    ends = pair if isinstance(pair, (list, tuple)) and len(pair) == 2 else ()
    numbers = [float(end) for end in ends if isinstance(end, (int, float))]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _row(key: tuple[str, str, str], values: Sequence[Value]) -> dict[str, Any]:
    told, metric, at = key
    first, spread = values[0]
    return {
        "at": told,
        "metric": metric,
        "percentile": at or None,
        "values": [value for value, _ in values],
        "ratios": [value / first if first else None for value, _ in values],
        "ci95": [
            list(pair) if spread and own and (pair := ratio_interval(first, spread, value, own)) else None
            for value, own in values
        ],
    }
