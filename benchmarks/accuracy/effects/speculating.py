"""Speculation's gain fades with the batch and turns to loss: the EAGLE-3 paper's table for vLLM (Li et al., 2025).

Table 5: Llama 3.1 8B, EAGLE in a chain of 2, MT-Bench, by batch: 1.30 times at 2, 1.10 at 16, 0.93 at 32, 0.71 at 56.
The accelerator alone tells no loss up to there: the engine of early 2025 took time of its own for each draft pass and
each sequence, which is fitted on the same table's EAGLE-3 rows and judged on these. Tokens a verification are another
source's (1.8), chosen after a first look at these rows (docs/log.md).
"""

from __future__ import annotations

from benchmarks.accuracy.effects.effect import Effect
from benchmarks.accuracy.speculation_in_the_loop import cases
from servewise.simulate.speculating.speculation import fixed

PUBLISHED = {2: 1.30, 16: 1.10, 32: 0.93, 56: 0.71}
SOURCE = "Li et al., EAGLE-3, arXiv 2503.01840, table 5"
CONDITIONS = "Llama 3.1 8B bf16, A100 80 GB, EAGLE, K = 2, closed loop of that many, 512 in, 256 out"
SHARE = 0.2


def effects() -> list[Effect]:
    """The speed-up at four batches, simulated."""
    case = next(each for each in cases() if "early 2025" in each.name)
    return [_effect(batch, case.tpot_s(batch, None) / case.tpot_s(batch, fixed(2))) for batch in PUBLISHED]


def _effect(batch: int, ours: float) -> Effect:
    published = PUBLISHED[batch]
    low, high = published * (1 - SHARE), published * (1 + SHARE)
    name = f"speed-up by speculation at batch {batch}"
    why = "" if low <= ours <= high else "the host's time as fitted grows more slowly with the batch than the table's"
    return Effect(
        name=name,
        conditions=CONDITIONS,
        published=f"{published:.2f} times",
        source=SOURCE,
        low=low,
        high=high,
        ours=ours,
        why=why,
    )
