"""Replicates put together: one interval from seeds, from a run's own spread and from that of the coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import hypot, sqrt

from servewise.metrics.percentiles import Interval, Percentiles
from servewise.metrics.summary import RunSummary, pool


def together(summaries: Sequence[RunSummary], *, seeded: bool, drawn: bool) -> RunSummary:
    """The mean of replicates, each with its own seed (``seeded``) and its own draw of coefficients (``drawn``).

    Interval of a mean over seeds: t s / sqrt(n). Coefficients do not average out over runs, so where they are drawn
    the spread is not divided by sqrt(n) (the seeds' part of it is then overstated). A trace that is replayed has no
    seeds: the run's own interval, from blocks of time, joins in quadrature.
    """
    whole = pool(summaries)
    if len(summaries) < 2:
        return whole
    factor = sqrt(len(summaries)) if drawn else 1.0
    return replace(
        whole,
        ttft=_widened(whole.ttft, summaries[0].ttft, factor, own=not seeded),
        tpot=_widened(whole.tpot, summaries[0].tpot, factor, own=not seeded),
        itl=_widened(whole.itl, summaries[0].itl, factor, own=not seeded),
        e2e=_widened(whole.e2e, summaries[0].e2e, factor, own=not seeded),
        ci95={name: _stretched(pair, factor) for name, pair in whole.ci95.items()},
    )


def _widened(pooled: Percentiles, first: Percentiles, factor: float, *, own: bool) -> Percentiles:
    wide = {key: _stretched(pair, factor) for key, pair in pooled.ci95.items()}
    if own:
        wide = _joined(pooled, wide, first)
    return replace(pooled, ci95={key: (max(low, 0.0), high) for key, (low, high) in wide.items()})


def _stretched(pair: Interval, factor: float) -> Interval:
    middle, reach = (pair[0] + pair[1]) / 2, (pair[1] - pair[0]) / 2
    return middle - factor * reach, middle + factor * reach


def _joined(pooled: Percentiles, wide: Mapping[str, Interval], single: Percentiles) -> dict[str, Interval]:
    """Both sources of spread in quadrature, each side for itself."""
    found = dict(wide)
    for key, (low, high) in single.ci95.items():
        value, centre = float(getattr(single, key)), float(getattr(pooled, key))
        between = wide.get(key, (centre, centre))
        found[key] = (
            centre - hypot(centre - between[0], value - low),
            centre + hypot(between[1] - centre, high - value),
        )
    return found
