"""Errors by split, engine, accelerator, model, load and share of waiting, beside the peer's on the same points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.accuracy.e2e_measured.judge import Judged

TPOT_BAR, TTFT_BAR = 0.10, 0.30
By = Callable[[Judged], str]


def _band(value: float, edges: Sequence[float], names: Sequence[str]) -> str:
    return names[sum(value >= edge for edge in edges)]


BREAKDOWNS: Mapping[str, By] = {
    "split": lambda each: each.split or "nothing fitted",
    "accelerator and engine": lambda each: f"{each.point.accelerator} {each.point.engine}",
    "model": lambda each: f"{each.point.model} {each.point.dtype}",
    "ranks": lambda each: f"TP{each.point.tensor}",
    "concurrency": lambda each: f"{each.point.concurrency:4d}",
    "load, of the KV pool": lambda each: _band(
        each.load, (0.25, 0.9), ("below 25%", "25% to 90%", "above 90%: clients wait for memory")
    ),
    "waiting in the predicted TTFT": lambda each: _band(
        each.queue_share, (0.25, 0.5), ("below 25%", "25% to 50%", "above 50%: waiting dominates")
    ),
}


def summary(judged: Sequence[Judged]) -> dict[str, float]:
    """Medians, 90th percentiles and signed medians of both errors; the peer's, and ours on the points that it gave."""
    found: dict[str, float] = {"points": len(judged)}
    for name in ("ttft", "tpot"):
        errors = np.array([getattr(each, f"{name}_error") for each in judged])
        found[f"{name}_median"] = float(np.median(np.abs(errors)))
        found[f"{name}_p90"] = float(np.quantile(np.abs(errors), 0.9))
        found[f"{name}_signed"] = float(np.median(errors))
    shared = [each for each in judged if each.point.peer_ttft_s and each.point.peer_tpot_s]
    found["peer_points"] = len(shared)
    if shared:
        for name in ("ttft", "tpot"):
            theirs = [getattr(e.point, f"peer_{name}_s") / getattr(e.point, f"{name}_s") - 1.0 for e in shared]
            ours = [getattr(each, f"{name}_error") for each in shared]
            found[f"peer_{name}_median"] = float(np.median(np.abs(theirs)))
            found[f"ours_there_{name}_median"] = float(np.median(np.abs(ours)))
    return {name: round(value, 4) for name, value in found.items()}


def breakdown(judged: Sequence[Judged], by: By) -> dict[str, dict[str, float]]:
    """The summary of each part, by name."""
    parts: dict[str, list[Judged]] = {}
    for each in judged:
        parts.setdefault(by(each), []).append(each)
    return {name.strip(): summary(parts[name]) for name in sorted(parts)}


def waiting_error(judged: Sequence[Judged]) -> dict[str, float]:
    """What of the TTFT error [s, and relative] lies at points where waiting is most of the predicted TTFT."""
    waits = [each for each in judged if each.queue_share >= 0.5]

    def seconds(some: Sequence[Judged]) -> float:
        return sum(abs(each.served.ttft_s - each.point.ttft_s) for each in some)

    def relative(some: Sequence[Judged]) -> float:
        return sum(abs(each.ttft_error) for each in some)

    return {
        "points": round(len(waits) / len(judged), 4),
        "of_error_in_seconds": round(seconds(waits) / seconds(judged), 4),
        "of_relative_error": round(relative(waits) / relative(judged), 4),
    }


def result(judged: Sequence[Judged]) -> dict[str, Any]:
    """The three sets: held out by model or load, held out by accelerator, nothing fitted."""
    sets = {
        "held out: another model or load": [e for e in judged if e.by in ("model", "load")],
        "held out: another accelerator": [e for e in judged if e.by == "accelerator"],
        "nothing fitted": [e for e in judged if e.by == "nothing fitted"],
    }
    found: dict[str, Any] = {"bar": {"tpot_median": TPOT_BAR, "ttft_median": TTFT_BAR}, "sets": {}}
    for name, mine in sets.items():
        overall = summary(mine)
        met = overall["tpot_median"] <= TPOT_BAR and overall["ttft_median"] <= TTFT_BAR
        found["sets"][name] = {
            "overall": overall,
            "meets_bar": met,
            "where_waiting_dominates": waiting_error(mine),
            **{by: breakdown(mine, key) for by, key in BREAKDOWNS.items() if name != "nothing fitted" or by != "split"},
        }
    found["points"] = {e.point.name: _record(e) for e in sets["held out: another model or load"]}
    return found


def _record(judged: Judged) -> str:
    """Predicted TTFT, TPOT and waiting [s] in one line: the record is read by the test of this benchmark."""
    served = judged.served
    return f"{served.ttft_s:.5g} {served.tpot_s:.5g} {served.queue_s:.5g}"
