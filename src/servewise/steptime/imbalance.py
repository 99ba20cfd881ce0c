"""How unevenly routed experts load the ranks that hold them: the step waits for the rank with the most.

Expert popularity is drawn for each of ``DRAWS`` layers from a symmetric Dirichlet distribution of ``concentration``
(infinite: all alike); tokens choose their distinct experts one after another by popularity (Gumbel top-k); experts lie
on the ranks in order, as many on each. The expected maximum over the ranks is then a number by token count.

``routing.R1`` is fitted to what DeepSeek-R1 did: 32 ranks, 1,024 routed tokens a rank and step, their standard
deviation 0.48 of the mean, layers averaged (NVIDIA/TensorRT-LLM, examples/wide_ep/ep_load_balancer/README.md, 2a595f8).
Its hottest rank had 2.56 times the mean there, which the fit did not see: it gives 2.3. After that tool's rebalancing
it was 1.12; Kimi-K3 over 16 ranks had 1.07 without (vllm-project/vllm pull request 50647).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from servewise.steptime.routing import Routing

Floats = NDArray[np.float64]

DRAWS = 64
EXACT = 8  # tokens that choose one by one; of later ones a rank's number is normal
GRID = (*range(1, EXACT + 1), *(EXACT * 2**doubling for doubling in range(1, 15)))


@dataclass(frozen=True, slots=True)
class Load:
    """Expected loads by token count on ``GRID``: routed ``tokens`` of the fullest rank, ``read`` experts of the widest.

    Both grow with the tokens, straight between the grid's points.
    """

    routing: Routing
    tokens: tuple[float, ...]
    read: tuple[float, ...]

    def hottest(self, tokens: int) -> float:
        """Routed tokens of the fullest rank over the mean of all ranks, when ``tokens`` tokens are routed; 1: even."""
        if not tokens:
            return 1.0
        at = min(tokens, GRID[-1])
        fullest = float(np.interp(at, GRID, self.tokens))
        over_mean: float = fullest * self.routing.ranks / (at * self.routing.chosen)
        return max(1.0, over_mean)

    def experts_read(self, tokens: int) -> float:
        """Distinct experts that the rank with the most of them reads."""
        return float(np.interp(tokens, GRID, self.read)) if tokens else 0.0


@lru_cache(maxsize=256)
def load_of(routing: Routing) -> Load:
    """The expected loads of ``routing``: the same for the same seed."""
    rng = np.random.default_rng(routing.seed)
    popularity, on = _popularity(routing, rng), _placed(routing)
    chosen = _chosen(popularity, routing.chosen, rng)  # (draw, token, expert)
    counts = chosen.cumsum(axis=1)
    fullest = list((counts @ on).max(axis=2).mean(axis=0))
    widest = list(((counts > 0) @ on).max(axis=2).mean(axis=0))
    often = _inclusion(popularity, routing.chosen)
    mean, variance = often @ on, (often * (1 - often)) @ on  # of one more token, by rank
    loads = counts[:, -1] @ on
    for before, after in zip(GRID[EXACT - 1 :], GRID[EXACT:], strict=False):
        more, noise = after - before, rng.standard_normal(mean.shape)
        loads = loads + np.maximum(0.0, more * mean + np.sqrt(more * variance) * noise)
        fullest.append(loads.max(axis=1).mean())
        widest.append(max(widest[-1], ((1 - (1 - often) ** after) @ on).max(axis=1).mean()))
    return Load(routing, tuple(map(float, fullest)), tuple(map(float, widest)))


def _popularity(routing: Routing, rng: np.random.Generator) -> Floats:
    """Logarithms of the experts' popularity in each draw, up to a constant."""
    shape = (DRAWS, routing.experts)
    if math.isinf(routing.concentration):
        return np.zeros(shape)
    # A Gamma of small shape underflows; its logarithm is that of Gamma(shape + 1) + log(uniform) / shape.
    drawn = np.log(rng.gamma(routing.concentration + 1.0, size=shape))
    found: Floats = drawn + np.log1p(-rng.random(shape)) / routing.concentration
    return found


def _chosen(popularity: Floats, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which experts each of the first tokens chooses: the ``count`` largest of log popularity + Gumbel noise."""
    shape = (DRAWS, EXACT, popularity.shape[1])
    keys = popularity[:, None, :] + rng.gumbel(size=shape)
    least = np.partition(keys, -count, axis=2)[:, :, -count, None]
    found: NDArray[np.bool_] = keys >= least
    return found


def _inclusion(popularity: Floats, count: int) -> Floats:
    """The chance that a token chooses each expert: its popularity where it chooses one, else 1 - exp(-popularity x t).

    t is such that they sum to ``count``: exact for many experts, some percent too even for fewer than ten.
    """
    weights = np.exp(popularity - popularity.max(axis=1, keepdims=True))
    if count == 1:
        alone: Floats = weights / weights.sum(axis=1, keepdims=True)
        return alone
    low, high = np.full((len(weights), 1), -10.0), np.full((len(weights), 1), 100.0)  # of log t
    for _ in range(40):
        middle = (low + high) / 2
        over = (-np.expm1(-weights * np.exp(middle))).sum(axis=1, keepdims=True) > count
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    found: Floats = -np.expm1(-weights * np.exp(low))
    return found


def _placed(routing: Routing) -> Floats:
    """Experts by ranks, 1 where the rank holds the expert."""
    rank = np.arange(routing.experts) * routing.ranks // routing.experts
    found: Floats = np.eye(routing.ranks)[rank]
    return found
