"""Replicates put together: one interval from seeds, or a run's own spread, and from that of the coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, hypot, inf, isfinite, log

from servewise.metrics.percentiles import Interval, Percentiles
from servewise.metrics.summary import RunSummary, pool

NAMES = ("mean", "p50", "p90", "p95", "p99")


def together(seeds: Sequence[RunSummary], slow: RunSummary | None, fast: RunSummary | None) -> RunSummary:
    """The mean over ``seeds``, each interval joined in quadrature with how far ``slow`` and ``fast`` lie away.

    ``metrics.pool`` gives the seeds' interval, t s / sqrt(n), or for one run its own from blocks of time. ``slow`` and
    ``fast`` are the first seed's run timed by the two clocks of ``plan.bracket``, between which 95% of the draws of the
    coefficients lie: their distance does not shrink with the number of seeds. Distances are factors (logarithms), each
    side for itself, since latencies near saturation reach much further up than down.
    """
    whole = pool(seeds)
    if slow is None or fast is None:
        return whole
    runs = (seeds[0], slow, fast)

    def joined(of: Callable[[RunSummary], Percentiles]) -> Percentiles:
        return _joined(of(whole), [of(each) for each in runs])

    return replace(
        whole,
        ttft=joined(lambda each: each.ttft),
        tpot=joined(lambda each: each.tpot),
        itl=joined(lambda each: each.itl),
        e2e=joined(lambda each: each.e2e),
    )


def _joined(whole: Percentiles, runs: Sequence[Percentiles]) -> Percentiles:
    ci95 = dict(whole.ci95)
    for name in NAMES:
        centre = float(getattr(whole, name))
        values = [float(getattr(each, name)) for each in runs]
        if all(isfinite(value) and value > 0 for value in (centre, *values)):
            ci95[name] = around(centre, ci95.get(name, (centre, centre)), *values)
    return replace(whole, ci95=ci95)


def around(centre: float, own: Interval, nominal: float, slow: float, fast: float) -> Interval:
    """``centre`` with its ``own`` interval, and as far beyond as ``slow`` and ``fast`` are from ``nominal``.

    An ``own`` that reaches to zero or below says nothing of how low the truth may lie: the interval begins at 0.

    >>> around(2.0, (2.0, 2.0), 1.0, 4.0, 0.5)
    (1.0, 8.0)
    """
    low, high = min(slow, fast, nominal), max(slow, fast, nominal)
    below = (log(centre / own[0]) if own[0] > 0 else inf) if own[0] < centre else 0.0
    above = log(own[1] / centre) if own[1] > centre else 0.0
    return centre * exp(-hypot(below, log(nominal / low))), centre * exp(hypot(above, log(high / nominal)))
