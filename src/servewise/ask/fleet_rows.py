"""Rows of a fleet's answer: latencies by layout, router and rate, what each replica did, what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servewise.ask.fleet_experiment import FleetRow
from servewise.ask.fleet_layout import Layout
from servewise.ask.fleet_servers import Servers
from servewise.ask.fleet_shares import Share
from servewise.ask.rows import simulated_row
from servewise.ask.speculating import speculation_row
from servewise.simulate.disaggregated.transfers import Moved

HOUR_S, MILLION = 3600.0, 1e6
COMPARED = (("ttft_s", "p95"), ("tpot_s", "p95"), ("e2e_s", "p95"))


def fleet_rows(
    layouts: Sequence[Layout],
    rates: Sequence[float],
    rows: Mapping[tuple[int, float], FleetRow],
    pools: Sequence[Servers],
) -> dict[str, list[dict[str, Any]]]:
    """Each layout at each rate, those apart beside as many mixed servers; and what each replica did."""
    each = [one for one in pools for _ in range(one.group.count)]
    accelerators = [one.group.deployment.parallelism.accelerators for one in each]
    prices, names = [one.usd_per_hour for one in each], [one.hardware for one in each]
    found, by_replica = [], []
    for at in rates:
        mixed: dict[str, dict[str, Any]] = {}
        for which, layout in enumerate(layouts):
            row = fleet_row(layout, at, rows[which, at], accelerators, prices)
            if layout.split is None:
                mixed[layout.router] = row
            row["against_mixed"] = None if layout.split is None else against(row, mixed[layout.router])
            found.append(row)
            by_replica += replica_rows(layout, at, rows[which, at], names)
    return {"rows": found, "replicas": by_replica}


def fleet_row(
    layout: Layout, rate: float, row: FleetRow, accelerators: Sequence[int], usd_per_hour: Sequence[float | None]
) -> dict[str, Any]:
    """One layout at one rate.

    ``accelerators`` and ``usd_per_hour`` of each replica by number; those that were added later are like the first.
    Hours, dollars, retries and transfers are means over the seeds, as the rates are; ``replicas_over_time``, and what
    the replicas together did in speculation, are the first seed's.
    """
    summary, runs = row
    first = runs[0]
    found = simulated_row(layout.router, rate or summary.requests_per_s, summary, slots=max(_slots(first.shares)))
    paid = [_paid(each.shares, accelerators, usd_per_hour) for each in runs]
    growing = any(each.balance.verdict == "growing" for each in runs)
    del found["policy"]
    return {"router": layout.router, "layout": layout.title} | found | {
        "failed": summary.failed,
        "retried": _mean([each.retried for each in runs]),
        "retries": _mean([each.retries for each in runs]),
        "stable": not growing,
        "balance": first.balance.verdict,
        "backlog_growth_per_s": first.balance.growth_per_s,
        "imbalance": None if layout.split else _imbalance(first.shares),
        "replica_hours": _mean([each[0] for each in paid]),
        "accelerator_hours": _mean([each[1] for each in paid]),
        **_cost([each[2] for each in paid], summary.output_tokens / len(runs)),
        "replicas_over_time": [list(head) for head in first.heads],
        "transfers": _moved([each.moved for each in runs]),
        **({} if first.tally is None else speculation_row(first.tally)),
    }  # fmt: skip


def replica_rows(layout: Layout, rate: float, row: FleetRow, names: Sequence[str]) -> list[dict[str, Any]]:
    """What each replica did in the first seed's run; ``names`` by number, of its hardware."""
    shares = row.runs[0].shares
    prefills = layout.split[0] if layout.split else 0
    return [
        {
            "router": layout.router,
            "layout": layout.title,
            "rate_per_s": rate or row.summary.requests_per_s,
            "replica": each.number,
            "role": "mixed" if layout.split is None else "prefill" if each.number < prefills else "decode",
            "hardware": names[each.number] if each.number < len(names) else names[0],
            "requests": each.requests,
            "output_tokens": each.output_tokens,
            "computed_prompt_tokens": each.computed_tokens,
            "prefix_hit_rate": each.cached_tokens / each.prompt_tokens if each.prompt_tokens else None,
            "busy": each.busy_s / each.paid_s if each.paid_s else None,
            "utilisation": each.active_steps / each.slot_steps if each.slot_steps else None,
            "paid_s": each.paid_s,
        }
        for each in shares
    ]


def against(row: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """``row``'s p95 latencies and goodput over those of ``base``; None where either is not known."""
    pairs = {f"{key[:-2]}_{at}": (row[key].get(at), base[key].get(at)) for key, at in COMPARED}
    pairs["goodput"] = row["goodput_per_s"], base["goodput_per_s"]
    return {name: mine / other if mine is not None and other else None for name, (mine, other) in pairs.items()}


def _slots(shares: Sequence[Share]) -> list[int]:
    return [each.slots for each in shares]


def _paid(
    shares: Sequence[Share], accelerators: Sequence[int], usd_per_hour: Sequence[float | None]
) -> tuple[float, float, float | None]:
    """Replica-hours, accelerator-hours and dollars."""
    hours = [each.paid_s / HOUR_S for each in shares]
    of = [each.number if each.number < len(accelerators) else 0 for each in shares]
    chips = [hour * accelerators[at] for hour, at in zip(hours, of, strict=True)]
    prices = [usd_per_hour[at] for at in of]
    dollars = None
    if None not in prices:
        dollars = sum(chip * price for chip, price in zip(chips, prices, strict=True) if price is not None)
    return sum(hours), sum(chips), dollars


def _cost(dollars: Sequence[float | None], output_tokens: float) -> dict[str, float | None]:
    known = [each for each in dollars if each is not None]
    if len(known) < len(dollars) or not output_tokens:
        return {"usd": None, "usd_per_million_output_tokens": None}
    return {"usd": _mean(known), "usd_per_million_output_tokens": _mean(known) / output_tokens * MILLION}


def _imbalance(shares: Sequence[Share]) -> float | None:
    """The busiest replica's time in steps over the mean, of those that worked."""
    busy = [each.busy_s for each in shares if each.busy_s > 0]
    return max(busy) / (sum(busy) / len(busy)) if busy else None


def _moved(each: Sequence[Moved | None]) -> dict[str, float] | None:
    known = [one for one in each if one is not None]
    if not known:
        return None
    count = max(sum(one.count for one in known), 1)
    return {
        "count": _mean([one.count for one in known]),
        "bytes": _mean([one.size_bytes for one in known]),
        "mean_bytes": sum(one.size_bytes for one in known) / count,
        "mean_sending_s": sum(one.busy_s for one in known) / count,
        "mean_waited_s": sum(one.waited_s for one in known) / count,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
