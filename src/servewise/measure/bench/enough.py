"""How many repeats are enough: until the 95% interval of each figure is as narrow as it was asked to be.

The interval is Student's over the repeats. Looking after each repeat and stopping when it is narrow makes intervals a
little too narrow, the less the more repeats there are (Chow and Robbins 1965: exact in the limit); hence three at
least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from servewise.metrics.replicas import interval, mean
from servewise.metrics.summary import RunSummary

FEWEST, MOST = 3, 20
FIGURES: Mapping[str, Callable[[RunSummary], float]] = {
    "ttft_p50": lambda each: each.ttft.p50,
    "tpot_p50": lambda each: each.tpot.p50,
    "output_tokens_per_s": lambda each: each.output_tokens_per_s,
}


def half_widths(repeats: Sequence[RunSummary]) -> dict[str, float]:
    """Of each figure, half of its 95% interval over its mean; infinite below two repeats.

    A figure that no repeat has (the TPOT of one-token answers) is left out.
    """
    values = {name: [figure(each) for each in repeats] for name, figure in FIGURES.items()}
    return {name: _relative(column) for name, column in values.items() if not all(map(math.isnan, column))}


def enough(repeats: Sequence[RunSummary], within: float) -> bool:
    """Whether every figure's interval is within -/+ ``within`` of its mean (0.05: 5%)."""
    return len(repeats) >= FEWEST and all(width <= within for width in half_widths(repeats).values())


def _relative(values: Sequence[float]) -> float:
    found, middle = interval(values), mean(values)
    if found is None:
        return math.inf
    reach = (found[1] - found[0]) / 2
    return reach / middle if middle > 0 else math.inf if reach > 0 else 0.0
