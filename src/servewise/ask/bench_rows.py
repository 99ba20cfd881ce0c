"""The runs of one condition as a row of CONTRACT's ``bench``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import fsum
from typing import Any

import numpy as np

from servewise.measure.bench.details import client_json, window_json
from servewise.measure.bench.enough import half_widths
from servewise.measure.bench.measured import Measured
from servewise.measure.load.achieved import Achieved, Gaps, achieved
from servewise.measure.load.wanted import LoadWanted
from servewise.measure.sending import HostShare
from servewise.metrics import latency
from servewise.metrics.summary import RunSummary, pool
from servewise.records.columns import COMPLETED
from servewise.workload.notation import written_arrivals


def measured_row(runs: Sequence[Measured], load: LoadWanted, seed: int) -> dict[str, Any]:
    """The row of ``runs``, all of one condition; counts are over all of them, figures as ``metrics.summary.pool``."""
    condition = runs[0].condition
    summary = pool([each.summary for each in runs])
    return (
        {
            "concurrency": condition.concurrency,
            "rate_per_s": condition.rate_per_s,
            "sessions": int(condition.value) if condition.kind == "sessions" else None,
            "requests": sum(each.tally.completed + each.tally.failed for each in runs),
            "errors": sum(each.tally.failed for each in runs),
            "cancelled": sum(each.tally.cancelled for each in runs),
            "completed": summary.completed,
        }
        | _latencies(summary)
        | _rates(summary)
        | _tokens(runs)
        | {
            "stable": all(each.balance is None or each.balance.verdict != "growing" for each in runs),
            "outcomes": outcomes(runs),
            "arrivals": _arrivals(runs, load, seed) if condition.is_open else None,
            "window": _window(runs),
            "client": _client(runs),
            "hosts": hosts(runs),
            "server": _server(runs),
            "half_widths": half_widths([each.summary for each in runs]) if len(runs) > 1 else None,
            "repeats": [_repeat(each) for each in runs],
        }
    )


def outcomes(runs: Sequence[Measured]) -> list[dict[str, Any]]:
    """How requests ended over all runs, with one reason for each way to fail; most frequent first."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for run in runs:
        counts.update(run.tally.records.outcomes)
        examples = run.tally.examples | examples
        if run.tally.repeated:
            counts["rate-limited, then repeated"] += run.tally.repeated
    return [
        {"outcome": name, "count": count} | ({"example": examples[name]} if name in examples else {})
        for name, count in counts.most_common()
    ]


def arrivals_of(run: Measured, load: LoadWanted, seed: int) -> Achieved:
    """What arrivals were asked and sent in an open-loop run."""
    requests = run.tally.records.columns
    sent = latency.floats(requests.sent_s)
    left = ~np.isnan(sent)
    process = None if load.trace is not None else written_arrivals(load.arrivals, run.condition.rate_per_s)
    return achieved(
        latency.floats(requests.scheduled_s)[left].tolist(), sent[left].tolist(), process, seed=seed + run.repeat
    )


def cached_known(runs: Sequence[Measured]) -> bool:
    """Whether the server said of any request how much of its prompt was cached."""
    return any(_sum(each, "cached_known") for each in runs)


def cached_share(runs: Sequence[Measured]) -> float:
    """Cached prompt tokens over prompt tokens, of completed requests."""
    prompts = fsum(_completed_sum(each, "prompt_tokens") for each in runs)
    return fsum(_completed_sum(each, "cached_tokens") for each in runs) / prompts if prompts else 0.0


def prompt_tokens_mean(runs: Sequence[Measured]) -> float | None:
    """Prompt tokens of a completed request; None where none completed."""
    completed = sum(each.tally.completed for each in runs)
    return _mean(fsum(_completed_sum(each, "prompt_tokens") for each in runs), completed)


def _latencies(summary: RunSummary) -> dict[str, Any]:
    names = ("ttft", "ttft_from_sent", "tpot", "itl", "e2e")
    return {f"{name}_s": getattr(summary, name).to_json() for name in names}


def _rates(summary: RunSummary) -> dict[str, Any]:
    names = ("requests_per_s", "output_tokens_per_s", "goodput_per_s")
    intervals = {f"ci95_{name}": list(summary.ci95[name]) for name in names if name in summary.ci95}
    return {name: getattr(summary, name) for name in names} | intervals


def _tokens(runs: Sequence[Measured]) -> dict[str, Any]:
    completed = sum(each.tally.completed for each in runs)
    output = fsum(_completed_sum(each, "output_tokens") for each in runs)
    events = sum(_sum(each, "events") for each in runs)
    known = cached_known(runs)
    counted: Counter[str] = Counter()
    for run in runs:
        counted.update(run.tally.counted_by())
    checks = [check for each in runs if (check := each.tally.token_check()) is not None]
    return {
        "cached_tokens": int(fsum(_completed_sum(each, "cached_tokens") for each in runs)) if known else None,
        "prompt_tokens_mean": prompt_tokens_mean(runs),
        "output_tokens_mean": _mean(output, completed),
        "tokens_per_event": _mean(output, events),
        "counted_by": dict(counted),
        "token_check": checks[-1] if checks else None,
    }


def _completed_sum(run: Measured, name: str) -> float:
    requests = run.tally.records.columns
    done = latency.ints(requests.status) == COMPLETED
    return float(latency.ints(getattr(requests, name))[done].sum())


def _sum(run: Measured, name: str) -> int:
    found = run.tally.records.details()[name]
    return found if isinstance(found, int) else 0


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def _arrivals(runs: Sequence[Measured], load: LoadWanted, seed: int) -> dict[str, Any]:
    """Of the first repeat: the others draw from the same process."""
    found = arrivals_of(runs[0], load, seed)
    late = dict(zip(("lateness_p50_s", "lateness_p99_s", "lateness_most_s"), found.lateness_s, strict=True))
    chance = None if found.by_chance is None else [_gaps(each) for each in found.by_chance]
    return {
        "process": found.arrivals,
        "asked": _gaps(found.asked),
        "sent": _gaps(found.sent),
        "by_chance": chance,
        "as_asked": found.as_asked,
    } | late


def _gaps(gaps: Gaps) -> dict[str, float]:
    return {"rate_per_s": gaps.rate_per_s, "cv": gaps.cv, "correlation": gaps.correlation}


def _window(runs: Sequence[Measured]) -> dict[str, Any]:
    first = window_json(runs[0].window, by_end=runs[0].condition.streams is not None)
    settled = [each.window.settled for each in runs]
    return {
        "seconds": fsum(each.window.duration_s for each in runs),
        "cut_requests": sum(each.window.cut for each in runs),
        "settled": None if None in settled else all(settled),
        "rule": first["rule"],
    }


def _client(runs: Sequence[Measured]) -> dict[str, Any]:
    """The repeat in which the client was latest."""
    each = [client_json(run.sending) for run in runs]
    worst = max(each, key=lambda found: float(found["lateness_p99_s"]) + float(found["stall_most_s"]))
    return worst | {"kernel_stamps": all(run.tally.kernel_stamped for run in runs)}


def hosts(runs: Sequence[Measured]) -> list[dict[str, Any]]:
    """Each host that sent, over all runs: counts added up, its clock as it was worst known; none for one process."""
    found: dict[str, list[HostShare]] = {}
    for share in (share for run in runs for share in run.sending.hosts):
        found.setdefault(share.host, []).append(share)
    return [_host(each) for each in found.values()]


def _host(shares: Sequence[HostShare]) -> dict[str, Any]:
    worst = max(shares, key=lambda each: each.clock_bound_s)
    counts = {name: sum(getattr(each, name) for each in shares) for name in ("requests", "completed", "lost")}
    return asdict(worst) | counts | {"end": next((each.end for each in shares if each.end), "")}


def _server(runs: Sequence[Measured]) -> dict[str, Any] | None:
    """Gauges at the mean over repeats, counters summed; None where the server tells nothing."""
    told = [each.timeline.summary(each.window.start_s, each.window.end_s) for each in runs if each.timeline.engine]
    if not told:
        return None
    found: dict[str, Any] = {"engine": told[0]["engine"], "samples": sum(each["samples"] for each in told)}
    for name in dict.fromkeys(name for each in told for name in each if name not in ("engine", "samples", "failures")):
        values = [each[name] for each in told if name in each]
        if isinstance(values[0], dict):
            means = fsum(value["mean"] for value in values) / len(values)
            found[name] = {"mean": means, "most": max(value["most"] for value in values)}
        elif name != "prefix_hit_share":
            found[name] = fsum(values)
    if found.get("prefix_queries_tokens"):
        found["prefix_hit_share"] = found.get("prefix_hits_tokens", 0.0) / found["prefix_queries_tokens"]
    return found


def _repeat(run: Measured) -> dict[str, Any]:
    return {
        "repeat": run.repeat,
        "ended": run.ended,
        "directory": None if run.directory is None else run.directory.name,
        "completed": run.summary.completed,
        "errors": run.tally.failed,
        "window_s": run.window.duration_s,
        "ttft_p50_s": run.summary.ttft.p50,
        "tpot_p50_s": run.summary.tpot.p50,
        "output_tokens_per_s": run.summary.output_tokens_per_s,
    }
