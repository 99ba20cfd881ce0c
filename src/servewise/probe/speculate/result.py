"""The survey's findings as its answer's rows: acceptance, predicted beside measured speed-up, the best by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servewise.engine.speculative.acceptance import AcceptanceCounts
from servewise.engine.speculative.costs import BatchCosts
from servewise.probe.speculate.acceptance import Replays, ci95
from servewise.probe.speculate.costs import resampled_costs
from servewise.probe.speculate.draft_spec import DraftSpec
from servewise.probe.speculate.prediction import predicted, turn_to_loss
from servewise.probe.speculate.speed import identical_share, paired_speedup, tokens_per_verification
from servewise.probe.speculate.survey import Findings, Scope
from servewise.techniques.speculation import SpeculationRow, best_row


def survey_result(spec: DraftSpec, scope: Scope, findings: Findings, costs: dict[int, BatchCosts]) -> dict[str, Any]:
    """The answer's ``result``: acceptance by position, then a row a batch and K, then the best by batch."""
    replays = Replays(findings.replies, scope.max_k)
    draws = replays.resampled(scope.seed)
    counts = replays.total()[-1]
    found: dict[str, Any] = {
        "draft": spec.text,
        "prompts": replays.prompts,
        "verifications": counts.positions[0].asked if counts.positions else 0,
        "acceptance_by_position": _positions(counts, [each[-1] for each in draws]),
    }
    if scope.acceptance_only or not costs:
        return found
    rows = {lanes: _rows(each, replays, draws, findings, scope) for lanes, each in costs.items()}
    by_batch = [_best(costs[lanes], found_rows) | _adaptive(lanes, findings) for lanes, found_rows in rows.items()]
    return found | {
        "draft_cost": by_batch[0]["draft_cost"],
        "best_k": by_batch[0]["best_k"],
        "speedup": by_batch[0]["speedup"],
        "by_batch": by_batch,
        "turn_to_loss": _turn(by_batch[0]["best_k_predicted"], rows),
        "rows": [row for found_rows in rows.values() for row in found_rows],
    }


def _positions(counts: AcceptanceCounts, draws: Sequence[AcceptanceCounts]) -> list[dict[str, Any]]:
    survivals = [each.survival() for each in draws]
    return [
        row | {"ci95_survival": ci95([each[place] for each in survivals if place < len(each)])}
        for place, row in enumerate(counts.to_json())
    ]


def _rows(
    costs: BatchCosts,
    replays: Replays,
    draws: Sequence[Sequence[AcceptanceCounts]],
    findings: Findings,
    scope: Scope,
) -> list[dict[str, Any]]:
    visits = findings.rounds[costs.lanes]
    others = resampled_costs(costs.lanes, visits, scope.max_k, len(draws), scope.seed)
    timed = predicted(replays.total(scope.timed(costs.lanes, replays.prompts)), costs)
    spread = [predicted(each, other) for each, other in zip(draws, others, strict=True)]
    plain, greedy = findings.speeds[costs.lanes, 0], scope.temperature == 0
    return [
        _row(costs, row, [each[row.k].speedup for each in spread], findings.speeds[costs.lanes, row.k], plain)
        | {
            "tokens_per_verification_predicted_timed": timed[row.k].tokens_per_verification,
            "speedup_predicted_timed": timed[row.k].speedup,
        }
        | ({"identical_outputs": identical_share(findings.speeds[costs.lanes, row.k], plain)} if greedy else {})
        for row in predicted(replays.total(), costs)
    ]


def _row(
    costs: BatchCosts,
    row: SpeculationRow,
    spread: Sequence[float],
    parts: Sequence[dict[str, Any]],
    plain: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    speedup, interval = paired_speedup(parts, plain)
    return {
        "batch": costs.lanes,
        "k": row.k,
        "draft_s": costs.draft_s[row.k],
        "verify_s": costs.verify_s[row.k],
        "draft_steps": costs.draft_s[row.k] / costs.verify_s[0],
        "verify_steps": costs.verify_s[row.k] / costs.verify_s[0],
        "tokens_per_verification_predicted": row.tokens_per_verification,
        "tokens_per_verification": tokens_per_verification(parts),
        "speedup_predicted": row.speedup,
        "ci95_speedup_predicted": ci95(spread),
        "speedup": speedup,
        "ci95_speedup": interval,
    }


def _best(costs: BatchCosts, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    guess = best_row([SpeculationRow(row["k"], 1.0, row["speedup_predicted"]) for row in rows])
    best = best_row([SpeculationRow(row["k"], 1.0, row["speedup"]) for row in rows])
    return {
        "batch": costs.lanes,
        "step_s": costs.verify_s[0],
        "draft_cost": costs.draft_cost,
        "best_k_predicted": guess.k,
        "speedup_predicted": guess.speedup,
        "best_k": best.k,
        "speedup": best.speedup,
    }


def _adaptive(lanes: int, findings: Findings) -> dict[str, Any]:
    """The speed-up where K followed the acceptance as it was measured, round by round."""
    value, interval = paired_speedup(findings.adaptive[lanes], findings.speeds[lanes, 0])
    return {"adaptive_speedup": value, "ci95_adaptive_speedup": interval}


def _turn(k: int, rows: dict[int, list[dict[str, Any]]]) -> dict[str, Any] | None:
    """Where the length that is best at the smallest batch stops paying, as predicted and as measured."""
    if k == 0:
        return None
    found: dict[str, Any] = {"k": k}
    for name, key in (
        ("predicted", "speedup_predicted"),
        ("predicted_timed", "speedup_predicted_timed"),
        ("measured", "speedup"),
    ):
        turn = turn_to_loss(k, [(lanes, each[k][key]) for lanes, each in sorted(rows.items())])
        found[f"loses_at_batch_{name}"] = turn.loses_at if turn else None
        found[f"even_at_batch_{name}"] = turn.batch if turn else None
    return found
