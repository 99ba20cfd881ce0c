"""A summary of runs as a row of CONTRACT's ``simulate`` or ``bench``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary


def simulated_row(policy: str, rate_per_s: float, summary: RunSummary, *, slots: int) -> dict[str, Any]:
    """The row; counts are over all replicates."""
    return {
        "policy": policy,
        "rate_per_s": rate_per_s,
        "ttft_s": summary.ttft.to_json(),
        "tpot_s": summary.tpot.to_json(),
        "itl_s": summary.itl.to_json(),
        "e2e_s": summary.e2e.to_json(),
        "utilisation": summary.utilisation,
        "output_tokens_per_s": summary.output_tokens_per_s,
        "goodput_per_s": summary.goodput_per_s,
        "completed": summary.completed,
        "rejected": summary.rejected,
        "preemptions": summary.preemptions,
        "unfinished": summary.unfinished,
        "slots": slots,
        "requests_per_s": summary.requests_per_s,
        "prompt_tokens": summary.prompt_tokens,
        "cached_tokens": summary.cached_tokens,
        "prefix_hit_rate": summary.prefix_hit_rate,
        "mean_phases": None if summary.phases is None else summary.phases.to_json(),
    } | {f"ci95_{name}": list(pair) for name, pair in summary.ci95.items()}


def measured_row(
    summary: RunSummary,
    *,
    concurrency: int | None = None,
    rate_per_s: float | None = None,
    outcomes: Mapping[str, int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The row of one condition of ``bench`` out of what a run directory, or another client's file, keeps.

    ``concurrency`` of a closed loop or ``rate_per_s`` of an open one; ``outcomes``: how many requests ended how, by
    name; ``more`` is what else is known of the condition. Means of tokens are over the completed requests.
    """
    ended = summary.completed + summary.failed + summary.rejected + summary.unfinished
    counts = {} if outcomes is None else outcomes
    return (
        {
            "concurrency": concurrency,
            "rate_per_s": rate_per_s,
            "requests": ended,
            "completed": summary.completed,
            "errors": ended - summary.completed,
            "outcomes": [{"outcome": name, "count": count} for name, count in sorted(counts.items()) if count],
            "ttft_s": summary.ttft.to_json(),
            "ttft_from_sent_s": summary.ttft_from_sent.to_json(),
            "tpot_s": summary.tpot.to_json(),
            "itl_s": summary.itl.to_json(),
            "e2e_s": summary.e2e.to_json(),
            "tokens_per_event": summary.tokens_per_event,
            "requests_per_s": summary.requests_per_s,
            "output_tokens_per_s": summary.output_tokens_per_s,
            "goodput_per_s": summary.goodput_per_s,
            "prompt_tokens_mean": summary.prompt_tokens / summary.completed if summary.completed else None,
            "output_tokens_mean": summary.output_tokens / summary.completed if summary.completed else None,
            "cached_tokens": summary.cached_tokens,
            "prefix_hit_rate": summary.prefix_hit_rate,
            "duration_s": summary.duration_s,
        }
        | {f"ci95_{name}": list(pair) for name, pair in summary.ci95.items()}
        | more
    )


def slo_rows(slo: Slo) -> list[dict[str, Any]]:
    """The SLO's bounds."""
    return [{"metric": each.metric, "percentile": each.percentile, "limit_s": each.limit_s} for each in slo.bounds]
