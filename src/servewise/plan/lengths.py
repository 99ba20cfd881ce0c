"""Traffic as columns of lengths, worked out once for the bounds of all candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.plan.traffic import Traffic
from servewise.workload.request import Request

POINTS = 48
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tabulated:
    """Whole numbers and the few of them, quantiles, at which a function that never falls is evaluated."""

    points: tuple[int, ...]
    place: Ints

    def least(self, function: Callable[[int], float]) -> Floats:
        """Below ``function`` of each number: that of the longest point at or below it."""
        found: Floats = np.array([function(point) for point in self.points])[self.place]
        return found


def tabulated(values: Ints) -> Tabulated:
    """``values`` at ``POINTS`` of their quantiles, the least among them."""
    points = np.unique(np.quantile(values, np.linspace(0, 1, POINTS), method="lower"))
    return Tabulated(tuple(points.tolist()), np.searchsorted(points, values, side="right") - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """``prompts`` and ``outputs`` of every request [tokens]; ``uncached``: prompt tokens that no cache could have.

    ``hardest`` are requests of which each other one is no longer than one of them, in prompt, output and in both.
    The tables are of prompts, of what of them is to be computed with a prefix cache, and of contexts half-way.
    """

    prompts: Ints
    outputs: Ints
    uncached: Ints
    hardest: tuple[Request, ...]
    prompt_table: Tabulated
    uncached_table: Tabulated
    middle_table: Tabulated

    def to_compute(self, *, caches: bool) -> Ints:
        """Prompt tokens of each request to compute at least."""
        return self.uncached if caches else self.prompts


def lengths_of(traffic: Traffic, hash_block_tokens: int | None) -> Lengths:
    """The lengths of ``traffic``, whose hashes name blocks of ``hash_block_tokens`` tokens (None: it has none)."""
    requests = traffic.requests
    prompts = np.array([each.prompt_tokens for each in requests])
    outputs = np.array([each.output_tokens for each in requests])
    uncached = prompts if hash_block_tokens is None else prompts - most_cached(requests, hash_block_tokens)
    return Lengths(
        prompts=prompts,
        outputs=outputs,
        uncached=uncached,
        hardest=hardest(requests),
        prompt_table=tabulated(prompts),
        uncached_table=tabulated(uncached),
        middle_table=tabulated(prompts + outputs // 2),
    )


def most_cached(requests: Sequence[Request], hash_block_tokens: int) -> Ints:
    """Prompt tokens of each request that an endless cache could have: its leading blocks that another one has too.

    At least a token is left to compute, as in ``BlockPool.cached_prefix``. Whichever came first: a later one may be
    computed before it.
    """
    holders = Counter(key for each in requests for key in set(each.block_hashes))
    found = []
    for each in requests:
        blocks, most = 0, (each.prompt_tokens - 1) // hash_block_tokens
        for key in each.block_hashes[:most]:
            if holders[key] < 2:
                break
            blocks += 1
        found.append(blocks * hash_block_tokens)
    return np.array(found, dtype=np.int64)


def hardest(requests: Sequence[Request]) -> tuple[Request, ...]:
    """Those that no other one exceeds both in prompt and in output: if a server takes them it takes all."""
    kept: list[Request] = []
    for each in sorted(requests, key=lambda request: (-request.prompt_tokens, -request.output_tokens)):
        if not kept or each.output_tokens > kept[-1].output_tokens:
            kept.append(each)
    return tuple(kept)
