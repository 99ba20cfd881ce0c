"""Rows and knees of a simulated server's answer, by policy and rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servewise.ask.experiment import Row
from servewise.ask.rows import simulated_row
from servewise.ask.speculating import speculation_row
from servewise.batching.policies import Policy
from servewise.plan.saturation import Knee


def simulated_rows(
    policies: Sequence[Policy], rates: Sequence[float], rows: Mapping[tuple[int, float], Row], knees: Sequence[Knee]
) -> list[dict[str, Any]]:
    """Each policy at each rate, and whether it is below its knee."""
    return [
        _row(policy, rate, rows[which, rate], knees[which]) for which, policy in enumerate(policies) for rate in rates
    ]


def knee_rows(policies: Sequence[Policy], knees: Sequence[Knee]) -> list[dict[str, Any]]:
    """Where each policy saturates."""
    return [
        {"policy": policy.name, "low_per_s": knee.low_per_s, "high_per_s": knee.high_per_s}
        for policy, knee in zip(policies, knees, strict=True)
    ]


def _row(policy: Policy, rate: float, row: Row, knee: Knee) -> dict[str, Any]:
    summary, balance, _ = row
    found = simulated_row(policy.name, rate or summary.requests_per_s, summary, slots=policy.slots)
    below = rate < knee.low_per_s and balance.verdict != "growing"
    found |= {} if row.tally is None else speculation_row(row.tally)
    return found | {"stable": below, "balance": balance.verdict, "backlog_growth_per_s": balance.growth_per_s}
