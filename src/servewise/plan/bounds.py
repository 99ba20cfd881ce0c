"""Cheap physical bounds: what a candidate cannot do is known before it is simulated.

Whatever the load, a first token comes no sooner than the steps that its prompt takes at least, and each later one than
a step that reads the weights and its own context. Used of an estimator: a step with less of everything takes no longer
(``tests/properties/test_plan_bounds.py`` holds it for all of them). Not used: that a prompt in one step takes no longer
than in parts, which does not hold (messages between ranks are slow from some size on).

- A prompt that is never cut is one step.
- A prompt is cut only by a full step (``Stepping.full_tokens``): so it takes whole what it takes, or a full step and
  another; of more than a chunk, as many full steps as there are whole chunks, and what is left.
- However it is cut, its tokens and its query-key pairs are computed: never below the least time of a token
  (``throughput``).
- Over pipeline stages parts follow each other, and each stage is passed: the slowest stage's time for all of the
  prompt, and that of a single token in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from servewise.batching.speculative.acceptance import MOST_DRAFTED
from servewise.metrics.slo import Bound, Slo, Violation
from servewise.plan.lengths import Lengths
from servewise.plan.prompt_tokens import PromptTokens
from servewise.plan.server import Server
from servewise.plan.stages import least_shape, stages_of
from servewise.plan.stepping import Stepping, stepping_of
from servewise.plan.throughput import caches
from servewise.steptime.estimator import Estimator
from servewise.steptime.pipeline import Pipeline
from servewise.steptime.shape import StepShape, add_chunk, decode_shape, prefill_shape

SHARES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
ROUNDING = 1e-9
Floats = NDArray[np.float64]


def least_violations(server: Server, lengths: Lengths, slo: Slo) -> tuple[Violation, ...]:
    """The bounds of ``slo`` that ``server`` breaks with every request alone on it, worst first."""
    return broken_by(least_values(server, lengths, slo), slo)


def least_values(server: Server, lengths: Lengths, slo: Slo) -> tuple[float, ...]:
    """What each bound of ``slo`` looks at is at least, with every request alone on ``server`` [s]."""
    least = least_latencies(server, lengths)
    return tuple(_at(bound, least[bound.metric]) for bound in slo.bounds)


def broken_by(values_s: Sequence[float], slo: Slo) -> tuple[Violation, ...]:
    """The bounds of ``slo`` that ``values_s``, one for each, are beyond; worst first."""
    found = (Violation(bound, value) for bound, value in zip(slo.bounds, values_s, strict=True))
    return tuple(sorted((each for each in found if each.factor > 1 + ROUNDING), key=lambda each: -each.factor))


def least_latencies(server: Server, lengths: Lengths) -> dict[str, Floats]:
    """For each latency, a bound [s] below what each request can have of it."""
    alone = alone_of(server, lengths)
    table = lengths.uncached_table if caches(server, alone.stepping) else lengths.prompt_table
    first = table.least(alone.first_token_s) + alone.outside_s
    token = _tokens_s(alone, lengths)
    several = lengths.outputs > 1
    return {
        "ttft": first,
        "tpot": token[several],
        "itl": np.array([0.0 if server.speculation else alone.token_s(int(lengths.prompts.min()) + 1)]),
        "e2e": first + (lengths.outputs - 1) * token,
    }


def _tokens_s(alone: Alone, lengths: Lengths) -> Floats:
    """Each request's mean time of a token after the first at least [s].

    A step is convex in the context, so it takes no less on average than at a context at or below the mean one (Jensen).
    Not within a window, where what is read stops growing: there at the first context.
    """
    if alone.window_tokens is None:
        return lengths.middle_table.least(alone.token_s)
    return lengths.prompt_table.least(lambda prompt_tokens: alone.token_s(prompt_tokens + 1))


def alone_of(server: Server, lengths: Lengths) -> Alone:
    """``server`` with one request on it, or as good as that."""
    stepping = stepping_of(server.policy, int(lengths.prompts.max()), speculates=server.speculation is not None)
    return Alone(
        pipeline=stages_of(server),
        stepping=stepping,
        tokens_a_step=1 if server.speculation is None else MOST_DRAFTED + 1,
        outside_s=outside_s(server),
    )


def outside_s(server: Server) -> float:
    """What a request takes outside of steps [s]."""
    return float(getattr(server.estimator, "request_s", 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A server with nothing to do but one request; ``outside_s`` [s] a request takes outside of steps.

    ``tokens_a_step``: of one sequence at most.
    """

    pipeline: Pipeline
    stepping: Stepping
    tokens_a_step: int = 1
    outside_s: float = 0.0
    _prices: dict[int, PromptTokens] = field(default_factory=dict)

    def token_s(self, context_tokens: int) -> float:
        """Seconds of a token after the first, on average over an answer, at least [s]."""
        step_s = self.pipeline.seconds(decode_shape(1, context_tokens, self.window_tokens))
        return step_s / self.tokens_a_step

    def first_token_s(self, prompt_tokens: int) -> float:
        """Seconds from an empty server to the first token of a prompt, at least [s]."""
        shape = prefill_shape(1, prompt_tokens, self.window_tokens)
        if self.stepping.longest_chunk is None:
            return self.pipeline.seconds(shape)
        stages = self.pipeline.stages
        passed = [each.seconds(least_shape(1)) for each in stages]
        of_all = [self._cut_s(at, each, prompt_tokens) for at, each in enumerate(stages)]
        hops = (len(stages) - 1) * self.pipeline.hop_s(1)
        return max(own - one for own, one in zip(of_all, passed, strict=True)) + sum(passed) + hops

    def _cut_s(self, at: int, stage: Estimator, prompt_tokens: int) -> float:
        """What the steps of a prompt that may be cut take of one stage at least."""
        chunk = self.stepping.longest_chunk or prompt_tokens
        before = (prompt_tokens - 1) // chunk
        rest = prompt_tokens - before * chunk
        last = add_chunk(StepShape(), prompt_tokens - rest, rest, self.window_tokens)
        full_s, one_s = (stage.seconds(least_shape(each)) for each in (self.stepping.full_tokens, 1))
        in_parts_s = before * full_s + min(stage.seconds(last), full_s + one_s)
        if not before and in_parts_s < full_s + one_s:
            return in_parts_s  # that is one step, and nothing is less
        if at not in self._prices:
            self._prices[at] = PromptTokens(stage, chunk)
        return max(in_parts_s, self._prices[at].least_s(prompt_tokens))

    @property
    def window_tokens(self) -> int | None:
        """The model's window."""
        return self.pipeline.stages[0].window_tokens


def _at(bound: Bound, values: Floats) -> float:
    """The value that ``bound`` looks at, as ``metrics.sample`` has it: linear between order statistics."""
    if not len(values):
        return 0.0
    return float(values.mean() if bound.percentile == "mean" else np.percentile(values, SHARES[bound.percentile]))
