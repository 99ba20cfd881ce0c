"""What became of the mutants: counts, and how sure the share is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import sqrt

from benchmarks.mutation.runner import KILLED, SURVIVED, TIMED_OUT


def score(ends: Iterable[str]) -> dict[str, object]:
    """Counts, and the share that was noticed (killed or timed out) with its 95% interval."""
    counts = Counter(end for end in ends if end in (KILLED, TIMED_OUT, SURVIVED))
    n, noticed = counts.total(), counts[KILLED] + counts[TIMED_OUT]
    return {
        "n": n,
        **{name: counts[name] for name in (KILLED, TIMED_OUT, SURVIVED)},
        "score": noticed / n if n else None,
        "ci95": list(wilson(noticed, n)) if n else None,
    }


def wilson(hits: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95% interval of a share (Wilson 1927, JASA 22); that each file has its part makes it no wider."""
    middle, square = hits + z * z / 2, z * z
    reach = z * sqrt(hits * (n - hits) / n + square / 4)
    return (middle - reach) / (n + square), (middle + reach) / (n + square)
