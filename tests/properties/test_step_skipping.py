"""The event core's jumps give what stepping one by one gives, for every policy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.batching.strategies import continuous, presets

from servewise.batching.policies import Dynamic, Policy, Static
from servewise.caveats import Caveat
from servewise.records.columns import REJECTED
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.run import Run, simulate
from servewise.steptime.estimator import Line, StepTime
from servewise.steptime.shape import StepShape
from servewise.workload.request import Request


@dataclass(frozen=True)
class LinesEstimator:
    """An estimator of arbitrary lines, bent where they cross, with a window."""

    lines: tuple[Line, ...]
    per_token_s: float
    window_tokens: int | None
    name: str = "lines"
    caveats: tuple[Caveat, ...] = ()

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        return tuple(Line(a * (1 + 0.01 * sequences), b, c) for a, b, c in self.lines)

    def seconds(self, shape: StepShape) -> float:
        read, windowed = shape.decode_context_tokens, shape.decode_windowed_tokens
        decode = max(a + b * read + c * windowed for a, b, c in self.decode_lines(shape.decode_sequences))
        pair_s = 1e-7 * (shape.prefill_pairs + shape.prefill_windowed_pairs + shape.prefill_context_tokens)
        return decode + self.per_token_s * shape.prefill_tokens + pair_s

    def step(self, shape: StepShape) -> StepTime:
        raise NotImplementedError


COUNTS = ("id", "status", "prompt_tokens", "cached_tokens", "output_tokens", "preemptions")
TIMES = ("scheduled_s", "admitted_s", "first_token_s", "end_s")

seconds = st.floats(1e-4, 0.1)
lines = st.lists(st.builds(Line, seconds, st.floats(0, 1e-4), st.floats(0, 1e-4)), min_size=1, max_size=3)
estimators = st.builds(
    LinesEstimator, lines.map(tuple), st.floats(1e-6, 1e-3), st.none() | st.sampled_from([1, 7, 16, 40])
)


# No think time ends with a step but for rounding: who is first then hangs on the order in which step times were summed.
thinking = st.just(0.0) | st.floats(1e-3, 0.2).map(lambda seconds: seconds * (1 + 1e-5 * math.pi))


@st.composite
def request_lists(draw: st.DrawFn) -> list[Request]:
    """Bursty requests with shared prefixes of 32-token hash blocks."""
    gaps = draw(st.lists(st.floats(0, 0.3), min_size=1, max_size=25))
    now, out = 0.0, []
    for serial, gap in enumerate(gaps):
        now += gap
        prompt = draw(st.integers(1, 150))
        family = draw(st.integers(0, 2))
        own = draw(st.integers(0, prompt // 32))
        hashes = tuple(
            1000 * family + depth if depth < own else 10_000 * (serial + 1) + depth for depth in range(prompt // 32)
        )
        out.append(Request(serial, now, prompt, draw(st.integers(1, 60)), hashes, draw(st.integers(0, 2))))
    return out


policies = (
    continuous
    | presets
    | presets
    | st.builds(Static, st.integers(1, 5))
    | st.builds(Dynamic, st.integers(1, 5), st.floats(0, 1.0))
)


def close(left: float, right: float) -> bool:
    """Equal to 1e-9 relative, NaN equal to NaN."""
    return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)


def rows_of(run: Run, *, refused: bool) -> list[tuple[float, ...]]:
    """The requests' counts and times, in order of their ends; the rejected ones alone, or the others."""
    columns = [getattr(run.requests, name) for name in COUNTS + TIMES]
    return [row for row in zip(*columns, strict=True) if (row[1] == REJECTED) is refused]


def assert_equal_runs(jumped: Run, stepped: Run) -> None:
    """The same requests end in the same order at the same times with the same counts.

    A rejection's record may stand elsewhere: a jump that nobody could join is not cut for it.
    """
    for refused in (True, False):
        one, other = (rows_of(run, refused=refused) for run in (jumped, stepped))
        assert [each[:6] for each in one] == [each[:6] for each in other]
        for row, same in zip(one, other, strict=True):
            assert all(close(left, right) for left, right in zip(row[6:], same[6:], strict=True))
    assert sum(jumped.steps.steps) == len(stepped.steps)
    assert close(sum(jumped.steps.seconds), sum(stepped.steps.seconds))


@settings(max_examples=400, deadline=None)
@given(request_lists(), policies, estimators, st.none() | st.integers(14, 60))
def test_jumps_equal_single_steps(
    requests: list[Request], policy: Policy, estimator: LinesEstimator, blocks: int | None
) -> None:
    """Jumping over steps in which nothing changes gives the times of stepping one by one."""
    options = {"blocks": blocks, "block_tokens": 16, "hash_block_tokens": 32}
    jumped = simulate(requests, policy, estimator, **options)  # type: ignore[arg-type]
    stepped = simulate(requests, policy, estimator, **options, longest_jump=1)  # type: ignore[arg-type]

    assert len(jumped.requests) == len(requests)
    assert_equal_runs(jumped, stepped)


@settings(max_examples=100, deadline=None)
@given(request_lists(), continuous | presets, estimators, st.integers(1, 6), thinking)
def test_closed_loop_jumps_equal_single_steps(
    requests: list[Request], policy: Policy, estimator: LinesEstimator, clients: int, think_s: float
) -> None:
    """The same holds when each client waits for its answer before it sends again.

    Refusals apart: which client sends the next request depends on who hears first, and a refusal is told with the step.
    """
    jumped = simulate(ClosedArrivals(requests, clients, think_s), policy, estimator, blocks=40)
    assume(REJECTED not in jumped.requests.status)
    stepped = simulate(ClosedArrivals(requests, clients, think_s), policy, estimator, blocks=40, longest_jump=1)

    assert_equal_runs(jumped, stepped)
