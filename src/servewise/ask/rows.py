"""A summary of runs as a row of CONTRACT's ``simulate``."""

from __future__ import annotations

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
    } | {f"ci95_{name}": list(pair) for name, pair in summary.ci95.items()}


def slo_rows(slo: Slo) -> list[dict[str, Any]]:
    """The SLO's bounds."""
    return [{"metric": each.metric, "percentile": each.percentile, "limit_s": each.limit_s} for each in slo.bounds]
