"""Is B better than A, by how much, how sure is that, and does it keep what was claimed?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from servewise.answer import Answer
from servewise.ask.compare_caveats import compare_caveats
from servewise.ask.compare_demands import DEFAULT_METRIC, demands_of
from servewise.ask.compare_loads import Pair, compared, matched_loads
from servewise.ask.compare_rows import compared_rows, judged_rows
from servewise.ask.differing import (
    Difference,
    difference_caveats,
    differences,
    other_contents,
    over_loads,
    side_by_side,
)
from servewise.ask.numbers import whole
from servewise.ask.runs import conditions_in
from servewise.caveats import unique
from servewise.conditions import Conditions
from servewise.metrics.bootstrap import RESAMPLES
from servewise.metrics.claim import TOLERANCE
from servewise.metrics.slo import Slo, parse_slo


def compare(
    a: str | Path,
    b: str | Path,
    *,
    fail_if: str | None = None,
    claim: str | None = None,
    metric: str = DEFAULT_METRIC,
    tolerance: float = TOLERANCE,
    slo: str | Slo | None = None,
    seed: int = 0,
) -> Answer:
    """Every metric of run B against run A: the ratio, its 95% interval, the verdict.

    ``a`` and ``b``: run directories, measured or simulated; folders of runs, which are compared load by load; or result
    files of other clients (see ``measure.peers``). Runs of the same requests are compared request by request
    (``metrics.paired``, resampled by ``seed``), others as independent runs. ``fail_if``: gates like
    ``ttft_p95>+10%``. ``claim``: a speed-up like ``2.0x`` of ``metric``, kept within ``tolerance``. ``slo`` gives
    goodput too.
    """
    whole(seed, "seed", least=0)
    demands = demands_of(fail_if, claim, metric, tolerance)
    objective = parse_slo(slo) if isinstance(slo, str) else slo
    matched, left = matched_loads(conditions_in(a), conditions_in(b))
    loads = [compared(name, *pair, objective, seed) for name, pair in matched]
    sides, found = _differing([pair for _, pair in matched])
    different = {"differences": [each._asdict() for each in found]}
    drawn = {"resamples": RESAMPLES, "seed": seed}
    return Answer(
        command="compare",
        conditions=side_by_side(dict(zip("AB", sides, strict=True))),
        result=compared_rows(a, b, loads) | different | judged_rows(demands, loads) | drawn,
        caveats=unique((*difference_caveats(found), *compare_caveats(a, b, loads, left))),
    )


def _differing(pairs: Sequence[Pair]) -> tuple[list[Conditions], list[Difference]]:
    """The conditions of either side over all loads, and in what the sides differ, files that were read included."""
    sides = list(zip(*pairs, strict=True))
    wholes = [over_loads([each.conditions for each in side]) for side in sides]
    files = other_contents(*(side[0].runs[0].record.sources for side in sides))
    return wholes, [*differences(*wholes, besides=() if len(pairs) == 1 else ("load",)), *files]


def failing(answer: Answer) -> list[str]:
    """The gates that do not hold, in words."""
    return [
        f"{each['gate']}{' at ' + each['condition'] if each['condition'] else ''} ({100 * each['change']:+.1f}%)"
        for each in answer.result["gates"]
        if each["fails"]
    ]
