"""Cheap physical bounds: what a candidate cannot do is known before it is simulated.

No request is faster than alone on the server: its prompt in one step (in chunks where the policy cuts it), then one
token a step at batch 1. The estimator never takes less time for more tokens, so the time of a shorter prompt, read from
a table, is a bound for a longer one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from servewise.batching.policies import Continuous
from servewise.metrics.slo import Bound, Slo, Violation
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.steptime.shape import StepShape, add_chunk, decode_shape

TABLE = 48
SHARES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def least_violations(server: Server, traffic: Traffic, slo: Slo) -> tuple[Violation, ...]:
    """The bounds of ``slo`` that ``server`` breaks with every request alone on it, worst first."""
    least = least_latencies(server, traffic)
    found = (Violation(bound, _at(bound, least[bound.metric])) for bound in slo.bounds)
    return tuple(sorted((each for each in found if each.factor > 1), key=lambda each: -each.factor))


def least_latencies(server: Server, traffic: Traffic) -> dict[str, Floats]:
    """For each latency, a bound [s] below what each request of ``traffic`` can have of it."""
    prompts = np.array([each.prompt_tokens for each in traffic.requests])
    outputs = np.array([each.output_tokens for each in traffic.requests])
    middle = prompts + outputs // 2  # at or below the mean context; a step is convex in it (Jensen)
    first = _from_table(prompts, lambda tokens: prefill_alone_s(server, tokens))
    token = _from_table(middle, lambda tokens: decode_alone_s(server, tokens))
    several = outputs > 1
    return {
        "ttft": first,
        "tpot": token[several],
        "itl": np.array([decode_alone_s(server, int(prompts.min()) + 1)]),
        "e2e": first + (outputs - 1) * token,
    }


def prefill_alone_s(server: Server, prompt_tokens: int) -> float:
    """Seconds from an empty server to the first token of a prompt [s]; a prefix cache may have all but a block."""
    policy, window = server.policy, server.estimator.window_tokens
    budget, start = prompt_tokens, 0
    if isinstance(policy, Continuous):
        budget = policy.max_batched_tokens if policy.chunked_prefill else prompt_tokens
        start = max(prompt_tokens - (server.hash_block_tokens or 1), 0) if policy.prefix_cache else 0
    seconds = 0.0
    while start < prompt_tokens:
        chunk = min(budget, prompt_tokens - start)
        shape = add_chunk(StepShape(), start, chunk, window, ends_prompt=start + chunk == prompt_tokens)
        seconds += server.estimator.seconds(shape)
        start += chunk
    return seconds


def decode_alone_s(server: Server, context_tokens: int) -> float:
    """Seconds of a decode step of one sequence [s]."""
    return server.estimator.seconds(decode_shape(1, context_tokens, server.estimator.window_tokens))


def _from_table(lengths: Ints, seconds: Callable[[int], float]) -> Floats:
    """``seconds`` of the longest tabulated length at or below each of ``lengths``."""
    points = np.unique(np.quantile(lengths, np.linspace(0, 1, TABLE), method="lower"))
    table = np.array([seconds(int(each)) for each in points])
    found: Floats = table[np.searchsorted(points, lengths, side="right") - 1]
    return found


def _at(bound: Bound, values: Floats) -> float:
    if not len(values):
        return 0.0
    return float(values.mean() if bound.percentile == "mean" else np.percentile(values, SHARES[bound.percentile]))
