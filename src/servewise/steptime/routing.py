"""How a step's tokens are routed to experts, and how popular those are taken to be."""

from __future__ import annotations

from dataclasses import dataclass

R1 = 0.46  # the concentration that gives DeepSeek-R1's spread over ranks (``imbalance`` has the source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """``experts`` over ``ranks``, ``chosen`` of them by each token; popularity from a Dirichlet ``concentration``."""

    experts: int
    chosen: int
    ranks: int
    concentration: float = R1
    seed: int = 0
