"""The runs that are kept, as rows: one a variant and load, repeats pooled, with the machine's state around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from servewise.ask.rows import measured_row
from servewise.ask.runs import OneRun, conditions_in
from servewise.ask.serve_small.machine import BUSY_SHARE, SLOW_SHARE
from servewise.ask.serve_small.variants import SERVERS, Variant
from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.records.columns import COMPLETED


def rows_of(variant: Variant, folder: Path) -> list[dict[str, Any]]:
    """A row for each load of the variant at which something completed, in order of streams.

    ``partial``: a run of it was cut off, and goes in with what had ended by then.
    """
    try:
        found = conditions_in(folder)
    except InputError:
        return []
    rows = []
    for condition in found:
        runs = [each for each in condition.runs if COMPLETED in each.record.requests.status]
        if runs:
            concurrency, summary = int(float(str(condition.key[1]))), replace(condition, runs=tuple(runs)).summary(None)
            cached = summary.cached_tokens / summary.prompt_tokens if summary.prompt_tokens else None
            row = measured_row(summary, concurrency=concurrency, outcomes=_outcomes(runs), cached_share=cached)
            rows.append(_head(variant, runs) | row | {"run_dirs": [str(folder / each.name) for each in runs]})
    return rows


def _head(variant: Variant, runs: Sequence[OneRun]) -> dict[str, Any]:
    """What was served how, and on what machine."""
    record, machines = runs[0].record, [_mapping(each.record.details.get("machine")) for each in runs]
    return {
        "part": variant.part,
        "server": SERVERS[variant.server],
        "version": next((text for name, text in record.versions.items() if name != "servewise"), None)
        if variant.server != "own"
        else record.versions.get("servewise"),
        "weights": variant.weights,
        "batching": variant.batching,
        "prefix_cache": variant.prefix_cache,
        "shared_prefix": variant.shared,
        "lengths": record.conditions.lengths,
        "repeats": len(runs),
        "bandwidth_bytes_per_s": min(_numbers(machines, "bandwidth_bytes_per_s"), default=None),
        "others_share": max(_numbers(machines, "others_share"), default=None),
        "server_start_s": record.details.get("server_start_s"),
        "variant": variant.name,
        "partial": any(caveat.code == "partial-run" for each in runs for caveat in each.record.caveats),
    }


def _outcomes(runs: Sequence[OneRun]) -> dict[str, int]:
    found: dict[str, int] = {}
    for run in runs:
        for name, count in _mapping(run.record.details.get("outcomes")).items():
            found[name] = found.get(name, 0) + int(count)
    return found


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _numbers(machines: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(each[name]) for each in machines if isinstance(each.get(name), (int, float))]


def machine_caveats(rows: Sequence[Mapping[str, Any]]) -> tuple[Caveat, ...]:
    """What neighbours on the machine took from some of the rows."""
    found = []
    cure = "measure on a quiet machine: delete the runs and start again with the same command"
    busy = [row for row in rows if (row["others_share"] or 0.0) > BUSY_SHARE]
    if busy:
        most = max(row["others_share"] for row in busy)
        message = f"other programs held up to {most:.0%} of the cores' time before {len(busy)} of {len(rows)} rows"
        found.append(Caveat("disturbed", message, cure))
    known = [row["bandwidth_bytes_per_s"] for row in rows if row["bandwidth_bytes_per_s"]]
    slow = [each for each in known if each < SLOW_SHARE * max(known)]
    if slow:
        message = (
            f"memory gave from {min(known) / 1e9:.0f} to {max(known) / 1e9:.0f} GB/s: {len(slow)} of {len(rows)} rows "
            f"stand under {SLOW_SHARE:.0%} of the best"
        )
        found.append(Caveat("bandwidth-changed", message, cure))
    return tuple(found)
