"""How unevenly routed experts load the ranks that hold them: the step waits for the rank with the most.

Expert popularity is drawn for each of ``DRAWS`` layers from a symmetric Dirichlet distribution (infinite concentration:
all alike), or is that of counted layers; tokens choose their distinct experts one after another by popularity (Gumbel
top-k); experts lie on the ranks in order, as many on each, or where EPLB places them and their copies, by the very
popularity that is then served. The expected maximum over the ranks is then a number by token count.

``expert_load.R1`` is fitted to what DeepSeek-R1 did: 32 ranks, 1,024 routed tokens a rank and step, their standard
deviation 0.48 of the mean, layers averaged (NVIDIA/TensorRT-LLM, examples/wide_ep/ep_load_balancer/README.md, 2a595f8).
Its hottest rank had 2.56 times the mean there, which the fit did not see: it gives 2.3. After that tool's rebalancing
it was 1.12; Kimi-K3 over 16 ranks had 1.07 without (vllm-project/vllm pull request 50647).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servewise.deployment.expert_load import Counted
from servewise.steptime.eplb import Placement, placed
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
    layers, on = _layers(routing, rng), _on_rank(routing)
    chosen = _chosen(layers.popularity, routing.chosen, rng)  # (draw, token, expert)
    often = layers.often
    if routing.redundant is not None:
        placement = placed(often, routing.stored, routing.ranks)
        chosen, often = _on_copies(chosen, placement, rng), placement.share(often)
    counts = chosen.cumsum(axis=1)
    fullest = list((counts @ on).max(axis=2).mean(axis=0))
    widest = list(((counts > 0) @ on).max(axis=2).mean(axis=0))
    mean, variance = often @ on, (often * (1 - often)) @ on  # of one more token, by rank
    loads = counts[:, -1] @ on
    for before, after in zip(GRID[EXACT - 1 :], GRID[EXACT:], strict=False):
        more, noise = after - before, rng.standard_normal(mean.shape)
        loads = loads + np.maximum(0.0, more * mean + np.sqrt(more * variance) * noise)
        fullest.append(loads.max(axis=1).mean())
        widest.append(max(widest[-1], ((1 - (1 - often) ** after) @ on).max(axis=1).mean()))
    return Load(routing, tuple(map(float, fullest)), tuple(map(float, widest)))


class _Layers(NamedTuple):
    """By (draw, expert): logarithms of the popularity, up to a constant, and the chance that a token chooses it."""

    popularity: Floats
    often: Floats


def _layers(routing: Routing, rng: np.random.Generator) -> _Layers:
    if isinstance(routing.load, Counted):
        return _counted(routing.load, routing.chosen)
    popularity = _popularity(routing.load.concentration, routing.experts, rng)
    return _Layers(popularity, _inclusion(popularity, routing.chosen))


def _counted(load: Counted, chosen: int) -> _Layers:
    """The counted layers, over again until they are ``DRAWS``; counts are chances, whatever the popularity behind."""
    tokens = np.array(load.tokens)
    tokens = np.tile(tokens, (-(-DRAWS // len(tokens)), 1))
    often = np.minimum(1.0, tokens / tokens.sum(axis=1, keepdims=True) * chosen)
    with np.errstate(divide="ignore"):  # never chosen, and always: popularity 0, and endless
        return _Layers(np.log(often) if chosen == 1 else np.log(-np.log1p(-often)), often)


def _popularity(concentration: float, experts: int, rng: np.random.Generator) -> Floats:
    """Logarithms of the experts' popularity in each draw, up to a constant."""
    shape = (DRAWS, experts)
    if math.isinf(concentration):
        return np.zeros(shape)
    # A Gamma of small shape underflows; its logarithm is that of Gamma(shape + 1) + log(uniform) / shape.
    drawn = np.log(rng.gamma(concentration + 1.0, size=shape))
    found: Floats = drawn + np.log1p(-rng.random(shape)) / concentration
    return found


def _chosen(popularity: Floats, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which experts each of the first tokens chooses: the ``count`` largest of log popularity + Gumbel noise."""
    shape = (len(popularity), EXACT, popularity.shape[1])
    keys = popularity[:, None, :] + rng.gumbel(size=shape)
    least = np.partition(keys, -count, axis=2)[:, :, -count, None]
    found: NDArray[np.bool_] = keys >= least
    return found


def _on_copies(chosen: NDArray[np.bool_], placement: Placement, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which slots the tokens' experts are called in: one copy of each, any of them as likely."""
    which = rng.integers(0, placement.copies[:, None, :], size=chosen.shape)
    at = np.broadcast_to(placement.logical[:, None, :], (*chosen.shape[:2], placement.logical.shape[1]))
    here = np.take_along_axis(which, at, axis=2) == placement.copy[:, None, :]
    found: NDArray[np.bool_] = np.take_along_axis(chosen, at, axis=2) & here
    return found


def _inclusion(popularity: Floats, count: int) -> Floats:
    """The chance that a token chooses each expert: its popularity where it chooses one, else 1 - exp(-popularity x t).

    t is such that they sum to ``count``: exact for many experts, some percent too even for fewer than ten.
    """
    logs = popularity - popularity.max(axis=1, keepdims=True)
    if count == 1:
        weights = np.exp(logs)
        alone: Floats = weights / weights.sum(axis=1, keepdims=True)
        return alone
    least = -np.partition(logs, -count, axis=1)[
        :, -count, None
    ]  # where the least popular of the first is surely chosen
    low, high = np.full((len(logs), 1), -10.0), 100.0 + least  # of log t
    for _ in range(60):
        middle = (low + high) / 2
        over = _surely(logs + middle).sum(axis=1, keepdims=True) > count
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return _surely(logs + low)


def _surely(logs: Floats) -> Floats:
    """1 - exp(-exp(logs))."""
    found: Floats = -np.expm1(-np.exp(np.minimum(logs, 700.0)))
    return found


def _on_rank(routing: Routing) -> Floats:
    """Slots (experts in their order, where none is copied) by ranks, 1 where the rank holds the slot."""
    rank = np.arange(routing.stored) * routing.ranks // routing.stored
    found: Floats = np.eye(routing.ranks)[rank]
    return found
