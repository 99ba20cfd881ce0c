"""The simulator's prefix cache under conversations, held against Che's approximation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servewise.batching.policies import Continuous
from servewise.errors import InputError
from servewise.simulate.run import simulate
from servewise.simulate.settled import since
from servewise.steptime.estimator import Line
from servewise.steptime.shape import StepShape
from servewise.techniques.session_reuse import session_reuse
from servewise.workload.arrivals import Poisson
from servewise.workload.conversation import Conversation
from servewise.workload.conversations import Conversations
from servewise.workload.lengths import Fixed, Lengths, Uniform
from servewise.workload.prefix import SharedPrefix
from servewise.workload.thinking import Thinking

POOL = 60_000


class Millisecond:
    """Every step takes 1 ms, so that answers are short beside pauses."""

    name = "millisecond"
    window_tokens = None
    caveats = ()

    def seconds(self, shape: StepShape) -> float:
        """1 ms."""
        return 1e-3

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """1 ms."""
        return (Line(1e-3, 0.0, 0.0),)


def talks(pause_cv: float, turns: Lengths, prefix: SharedPrefix | None) -> Conversations:
    """Pauses of 30 s; 60 to 140 said, 20 to 60 answered."""
    return Conversations(
        turns=turns,
        user_tokens=Uniform(60, 140),
        output_tokens=Uniform(20, 60),
        count=4_000,
        arrivals=Poisson(1.0),
        thinking=Thinking(30, pause_cv),
        prefix=prefix,
    )


@pytest.mark.parametrize(
    ("pause_cv", "turns", "prefix", "rate_per_s"),
    [
        (1.0, Uniform(2, 8), None, 3.0),
        (1.0, Uniform(2, 8), None, 9.0),
        (2.0, Uniform(1, 12), SharedPrefix(1, 320), 12.0),
        (1.0, Fixed(4), SharedPrefix(1, 1600), 20.0),
    ],
)
def test_hit_rates_are_those_of_ches_approximation(
    pause_cv: float, turns: Lengths, prefix: SharedPrefix | None, rate_per_s: float
) -> None:
    """At rates where most, some and little of the history is still there: within 2 points of the closed form.

    The closed form is taken over 60,000 turns, the run over 4,000: chance alone moves it by half a point.
    """
    workload = talks(pause_cv, turns, prefix).at_rate(rate_per_s)
    source = workload.session(1)
    policy = Continuous(256, 8192, prefix_cache=True)
    run = simulate(source, policy, Millisecond(), blocks=POOL // 16, hash_block_tokens=16)  # type: ignore[arg-type]
    counted = since(run, source.settle_s).requests
    expected = session_reuse(replace(workload, count=60_000).conversations(2), rate_per_s, POOL)

    assert len(counted) == 4_000
    assert sum(counted.cached_tokens) / sum(counted.prompt_tokens) == pytest.approx(expected.hit_rate, abs=0.02)


def test_by_hand() -> None:
    """Two turns of 50 and 100 tokens a pause of 10 s apart, one turn a second, blocks of one token.

    49 and 99 tokens are left; the second never again. T within 10 s: (49 + 99) / 2 x T tokens. A pool of 370 is filled
    in 5 s, before the next turn; one of 1,235 in 20 s: 49/2 x 10 + 99/2 x 20. Then 49 of 40 + 90 tokens are found.
    """
    talk = Conversation(0, 0.0, [40, 90], [10, 10], [0.0, 10.0], (), 0, 1)
    short, long = (session_reuse([talk], 1.0, pool) for pool in (370, 1_235))
    assert short.hit_rate == 0
    assert [short.characteristic_s, long.characteristic_s] == pytest.approx([5, 20])
    assert long.hit_rate == pytest.approx(49 / 130)


def test_no_rate_and_no_turns_are_refused() -> None:
    """One line each."""
    with pytest.raises(InputError, match="above 0"):
        session_reuse([], 0.0, 1)
    with pytest.raises(InputError, match="no turns"):
        session_reuse([], 1.0, 1)
