"""Where the time of a request goes: the account in the records against one kept step by step."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.metrics.latency import e2e
from servewise.metrics.phases import NAMES, phases
from servewise.simulate.run import Run, simulate
from servewise.simulate.witness import Witness
from servewise.steptime.estimator import Line, StepTime
from servewise.steptime.shape import StepShape
from servewise.workload.request import Request

POLICIES = (Continuous(4, 16), Continuous(4, 16, chunked_prefill=False), Static(3), Dynamic(3, 2.0))


class TokenClock:
    """A step takes 1 s and 0.1 s a new token."""

    name, window_tokens, caveats = "tokens", None, ()

    def seconds(self, shape: StepShape) -> float:
        """By its tokens."""
        return 1.0 + 0.1 * shape.tokens

    def step(self, shape: StepShape) -> StepTime:
        """All overhead."""
        seconds = self.seconds(shape)
        return StepTime(0.0, 0.0, seconds, 0.0, seconds, 0.0, "overhead")

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """Flat."""
        return (Line(1.0 + 0.1 * sequences, 0.0),)


requests_drawn = st.lists(
    st.tuples(st.floats(0, 30), st.integers(1, 40), st.integers(1, 30)), min_size=1, max_size=25
).map(lambda rows: [Request(serial, *row) for serial, row in enumerate(sorted(rows))])


def seen(requests: list[Request], policy: Policy, blocks: int) -> tuple[Run, Witness]:
    """The run and what its witness saw from beginning to end."""
    witness = Witness(-1.0, 1e9)
    return simulate(requests, policy, TokenClock(), blocks=blocks, block_tokens=4, watch=witness), witness


@settings(deadline=None, max_examples=150)
@given(requests=requests_drawn, policy=st.sampled_from(POLICIES), blocks=st.integers(18, 60))
def test_the_parts_are_those_of_a_witness_and_add_up(requests: list[Request], policy: Policy, blocks: int) -> None:
    """Each part is what a witness of all steps counted for it, none is negative, and they add up to the latency."""
    run, witness = seen(requests, policy, blocks)
    counted: dict[tuple[int, str], float] = defaultdict(float)
    for span in witness.finish().spans:
        counted[span.serial, f"{span.phase}_s"] += span.end_s - span.start_s
    found = phases(run.requests)
    assert found is not None
    total = np.sum(list(found.values()), axis=0)
    done = np.array(run.requests.status) == 0
    assert total[done] == pytest.approx(e2e(run.requests)[done], rel=1e-12, abs=1e-12)
    for row in np.flatnonzero(done):
        for name in NAMES:
            assert found[name][row] == pytest.approx(counted[run.requests.id[row], name], abs=1e-9), name
            assert found[name][row] >= -1e-9


def test_a_preempted_request_by_hand() -> None:
    """Two requests of which one must go back: its times away and its second prefill are told apart.

    8 blocks of 4 tokens. Both prompts of 12 tokens take 3 blocks each: one step of 24 tokens, 1 + 2.4 s. Decoding takes
    1.2 s a step for two. After 5 tokens (the first came with the prompt) each has 16 in the cache, 4 blocks each: the
    pool is full, so the younger one goes back at 3.4 + 4 x 1.2 = 8.2 s. The older one has 20 - 5 = 15 tokens to go at
    1.1 s each and ends at 24.7 s. Then the younger is admitted and computes 12 + 5 tokens in 1 + 1.7 s, which also
    brings its sixth token; 14 more at 1.1 s.
    """
    requests = [Request(0, 0.0, 12, 20), Request(1, 0.0, 12, 20)]
    run, _ = seen(requests, Continuous(4, 64), 8)
    found = phases(run.requests)
    assert found is not None
    younger = list(run.requests.id).index(1)
    assert run.requests.preemptions[younger] == 1
    assert found["queue_s"][younger] == 0.0
    assert found["preempted_s"][younger] == pytest.approx(24.7 - 8.2)
    assert found["prefill_s"][younger] == pytest.approx(3.4 + 2.7)
    assert found["decode_s"][younger] == pytest.approx(8.2 - 3.4 + 14 * 1.1)
