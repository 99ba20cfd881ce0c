"""How unevenly a model's routed experts are called on: drawn from a distribution, or counted on real traffic."""

from __future__ import annotations

import math
from dataclasses import dataclass

R1 = 0.46  # the concentration that gives DeepSeek-R1's spread over ranks (``steptime.imbalance`` has the source)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Each layer's popularity is a draw from a symmetric Dirichlet distribution of that ``concentration``.

    Infinite: all experts alike, so that chance alone makes ranks uneven. Towards 0 one expert has all.
    """

    concentration: float

    def __str__(self) -> str:
        """Shortly, as options have it."""
        return "even" if math.isinf(self.concentration) else f"dirichlet:{self.concentration:g}"


@dataclass(frozen=True, slots=True)
class Counted:
    """The tokens that each expert got (inner) in each layer that was counted (outer), as ``source`` has them."""

    tokens: tuple[tuple[float, ...], ...]
    source: str

    @property
    def experts(self) -> int:
        """Experts of a layer."""
        return len(self.tokens[0])

    def __str__(self) -> str:
        """Shortly: where from and how much."""
        choices = sum(map(sum, self.tokens))
        return f"counted ({self.source}: {len(self.tokens)} x {self.experts} experts, {choices:,.0f} choices)"


ExpertLoad = Drawn | Counted
EVEN = Drawn(math.inf)
USUAL = Drawn(R1)
