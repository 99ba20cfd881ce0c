"""How a step's tokens are routed to experts, how popular those are taken to be, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.deployment.expert_load import USUAL, ExpertLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """``experts`` over ``ranks``, ``chosen`` of them by each token, as popular as ``load`` has it.

    ``redundant`` copies are added and all placed by EPLB; None: experts lie in their order, as many on each rank.
    """

    experts: int
    chosen: int
    ranks: int
    load: ExpertLoad = USUAL
    redundant: int | None = None
    seed: int = 0

    @property
    def stored(self) -> int:
        """Experts on all ranks together, copies counted."""
        return self.experts + (self.redundant or 0)
