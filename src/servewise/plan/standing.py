"""Which candidate another one beats in everything: what it costs, what an accelerator of it carries, how fast it is.

One is dominated where another costs no more, carries no less on an accelerator and is no slower, and is better in one
of these. (Not the rate of a replica: replicas are independent, and as many are taken as it takes.) How slow it is, is
what the SLO's bounds look at with each request alone: at its own highest rate each candidate has another load, and the
better one, which carries more, the larger. Those are bounds, a little below what a simulation of it would show, so what
is within ``AS_FAST`` is no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from servewise.plan.cost import Cost
from servewise.plan.ranking import Measure

ROUNDING = 1e-9
AS_FAST = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``cost`` as ranked by, smaller is better (inf: not known); ``alone_s``: one for each bound of the SLO [s]."""

    cost: float
    rate_per_accelerator_per_s: float
    alone_s: tuple[float, ...]

    def dominates(self, other: Standing) -> bool:
        """Whether it is as good as ``other`` in all of them, and better in one; never where one is not known.

        >>> one = Standing(cost=2.0, rate_per_accelerator_per_s=3.0, alone_s=(0.1,))
        >>> two = Standing(cost=2.5, rate_per_accelerator_per_s=3.0, alone_s=(0.1,))
        >>> one.dominates(two), two.dominates(one), one.dominates(one)
        (True, False, False)
        """
        known = isfinite(self.cost) and isfinite(other.cost) and len(self.alone_s) == len(other.alone_s)
        if not known:
            return False
        return not other._better(self) and self._better(other)

    def _better(self, than: Standing) -> bool:
        """Whether it is better in any."""
        cheaper = self.cost < than.cost - ROUNDING * abs(than.cost)
        carries_more = self.rate_per_accelerator_per_s > than.rate_per_accelerator_per_s * (1 + ROUNDING)
        faster = any(mine * (1 + AS_FAST) < theirs for mine, theirs in zip(self.alone_s, than.alone_s, strict=True))
        return cheaper or carries_more or faster


def standing(rate_per_s: float, cost: Cost, by: Measure, alone_s: tuple[float, ...]) -> Standing:
    """Of a candidate that carries ``rate_per_s`` a replica, at that cost."""
    return Standing(
        cost=by.key(rate_per_s, cost)[0],
        rate_per_accelerator_per_s=cost.rate_per_accelerator_per_s,
        alone_s=alone_s,
    )


def dominator(of: Standing, ranked: Sequence[Standing]) -> int | None:
    """The place of the first that dominates it; None: it is on the front."""
    return next((place for place, each in enumerate(ranked) if each.dominates(of)), None)
