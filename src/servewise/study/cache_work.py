"""What a KV cache saves and that it changes nothing: positions, tokens and logits of both runs."""

from __future__ import annotations

import numpy as np

from servewise.study import published
from servewise.study.agreement import at_most, exact, holds, shown
from servewise.study.generation import Generation, generate_with_cache, generate_without_cache
from servewise.study.row import StudyRow, StudyTable
from servewise.study.transformer import TransformerConfig, random_transformer

SEED = 0
PROMPT = (3, 14, 15, 9, 26)
ROUNDING_LIMIT = 1e-13  # 450 float64 epsilons on logits of order 1; even a cache in float16 is off by 1e-3
SAFE_MARGIN = 1e-9  # a gap between best and second logit that rounding cannot close


def cache_work_table() -> StudyTable:
    """Positions processed with and without a cache, and the largest difference of a logit."""
    model = random_transformer(TransformerConfig(), SEED)
    rows: list[StudyRow] = []
    for count in published.CACHE_WORK:
        plain, cached = generate_without_cache(model, PROMPT, count), generate_with_cache(model, PROMPT, count)
        rows += _rows(count, plain, cached)
    rows += _wall_rows(plain, cached)
    return StudyTable(
        name="cache_work",
        title="Positions processed to generate N tokens after a 5-token prompt",
        rows=tuple(rows),
        note=f"counted by the model as it runs; tiny transformer in float64, seed {SEED}; the cached run feeds its "
        "last token back, as the study's does (N + 4 positions would do for these tokens)",
    )


def _rows(count: int, plain: Generation, cached: Generation) -> list[StudyRow]:
    without, with_cache, difference = published.CACHE_WORK[count]
    case = {"tokens": count}
    largest = float(np.max(np.abs(plain.logits - cached.logits)))
    return [
        exact(case, "positions, no cache", without, plain.positions, "positions"),
        exact(case, "positions, cache", with_cache, cached.positions, "positions"),
        at_most(
            case, "max logit difference", difference, largest, ROUNDING_LIMIT, note=_magnitude(difference, largest)
        ),
        holds(case, "tokens equal", tokens_equal(plain, cached), note=_evidence(plain, largest)),
    ]


def tokens_equal(plain: Generation, cached: Generation) -> bool:
    """Equal tokens, and no tie that rounding could have decided."""
    return plain.tokens == cached.tokens and min(plain.margin, cached.margin) > SAFE_MARGIN


def _magnitude(printed: str, ours: float) -> str:
    same = 0.1 <= ours / float(printed) <= 10
    return "the study's order of magnitude" if same else "another order of magnitude than the study's, still rounding"


def _evidence(run: Generation, largest: float) -> str:
    distinct = len(set(run.tokens))
    return f"{distinct} distinct tokens; smallest gap to the second-best logit {run.margin:.1e}, rounding {largest:.0e}"


def _wall_rows(plain: Generation, cached: Generation) -> list[StudyRow]:
    case, why = {"tokens": len(plain.tokens)}, "machine-specific"
    return [
        shown(case, "wall time, no cache", published.WALL_S["without cache"], plain.seconds, why, "s"),
        shown(case, "wall time, cache", published.WALL_S["with cache"], cached.seconds, why, "s"),
    ]
