"""The study's speculation table, from the closed forms that ``speculate`` uses."""

from __future__ import annotations

from servewise.study import published
from servewise.study.agreement import exact, rounded, within_factor
from servewise.study.row import StudyRow, StudyTable
from servewise.techniques.speculation import acceptance_needed, best_row, speculation_rows, tokens_per_verification

MAX_K = 64
VERIFIED_K = 4


def speculation_table() -> StudyTable:
    """Best draft length and speed-up by draft cost and acceptance, tokens per verification at K = 4."""
    best = [
        row
        for cost, by_acceptance in published.SPECULATION.items()
        for acceptance, (k, speedup) in by_acceptance.items()
        for row in _best_rows(cost, acceptance, k, speedup)
    ]
    tokens = [
        rounded(
            {"acceptance": acceptance}, "tokens per verification at K = 4", printed,
            tokens_per_verification(acceptance, VERIFIED_K), "tokens",
        )
        for acceptance, printed in published.TOKENS_PER_VERIFICATION_AT_4.items()
    ]  # fmt: skip
    return StudyTable(
        name="speculation",
        title="Speculative decoding: best draft length K and speed-up over plain decoding",
        rows=(*best, *tokens, *_cost_rows()),
        note="closed forms with one acceptance rate for all positions (Leviathan et al. 2023, theorem 3.8)",
    )


def _best_rows(cost: float, acceptance: float, k: str, speedup: str) -> list[StudyRow]:
    found = best_row(speculation_rows(acceptance, cost, MAX_K))
    case = {"draft_cost": cost, "acceptance": acceptance}
    return [exact(case, "best K", k, found.k, "tokens"), rounded(case, "speed-up", speedup, found.speedup)]


def _cost_rows() -> list[StudyRow]:
    draft_ms, target_ms = published.DRAFT_COST_MS
    needed = acceptance_needed(2.0, draft_ms / target_ms, MAX_K)
    assert needed is not None, "a free acceptance of 1 doubles the speed at this draft cost"
    case = {"draft_cost": 0.128}
    return [
        rounded(case, "draft cost of 1.8 against 14.1 ms", "0.128", draft_ms / target_ms),
        within_factor(
            case, "acceptance needed for 2x", published.ACCEPTANCE_FOR_TWICE, needed, 1.1,
            note="the study says 'roughly'; a = 0.7 gives 1.83x and 0.8 gives 2.25x",
        ),
    ]  # fmt: skip
