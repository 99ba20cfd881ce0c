"""Synthetic workloads: independent streams of one seed, common lengths at every rate, prefixes, ends."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from servewise.errors import InputError
from servewise.workload.arrivals import Constant, Gamma, Poisson
from servewise.workload.lengths import Fixed, Lognormal, Uniform
from servewise.workload.prefix import SharedPrefix
from servewise.workload.synthetic import ClosedLoop, Synthetic
from servewise.workload.workload import Workload

CHAT = Synthetic(arrivals=Poisson(2.0), prompt_lengths=Lognormal(600, 0.9), output_lengths=Uniform(1, 99), count=40_000)


def test_the_same_seed_gives_the_same_requests() -> None:
    """Two passes of one seed are equal, request by request; another seed differs in times and lengths."""
    first, again, other = (list(CHAT.requests(seed)) for seed in (3, 3, 4))
    assert first == again
    assert [r.arrival_s for r in first[:9]] != [r.arrival_s for r in other[:9]]
    assert [r.prompt_tokens for r in first[:9]] != [r.prompt_tokens for r in other[:9]]


def test_serials_count_from_zero_and_times_ascend() -> None:
    """Over chunk borders, serials are 0..n-1 and arrivals ascend."""
    made = list(CHAT.requests(0))
    assert [r.serial for r in made] == list(range(40_000))
    assert all(a.arrival_s <= b.arrival_s for a, b in itertools.pairwise(made))


@pytest.mark.parametrize(
    "other",
    [
        CHAT.at_rate(31.0),
        Synthetic(
            arrivals=Gamma(5.0, 4.0),
            prompt_lengths=CHAT.prompt_lengths,
            output_lengths=CHAT.output_lengths,
            duration_s=200.0,
        ),
    ],
)
def test_lengths_do_not_depend_on_rate_or_arrivals(other: Synthetic) -> None:
    """Common random numbers: under one seed, request i has the same lengths at every rate and arrival process."""
    pairs = list(zip(CHAT.requests(8), other.requests(8), strict=False))
    assert len(pairs) > 500
    assert all(a[2:4] == b[2:4] for a, b in pairs)


def test_prompt_and_output_streams_are_independent() -> None:
    """With one distribution for both, prompts and outputs of one seed must not be the same numbers."""
    both = Synthetic(arrivals=Poisson(1), prompt_lengths=Uniform(1, 9999), output_lengths=Uniform(1, 9999), count=100)
    made = list(both.requests(0))
    assert sum(r.prompt_tokens == r.output_tokens for r in made) < 5


def test_duration_ends_the_run_and_count_does_too() -> None:
    """Constant 4/s for 10 s are 40 requests; a count of 7 ends earlier; whichever comes first holds."""
    base = {"arrivals": Constant(4.0), "prompt_lengths": Fixed(8), "output_lengths": Fixed(8)}
    assert len(list(Synthetic(**base, duration_s=10.0).requests(0))) == 40  # type: ignore[arg-type]
    assert len(list(Synthetic(**base, duration_s=10.0, count=7).requests(0))) == 7  # type: ignore[arg-type]
    assert len(list(Synthetic(**base, duration_s=10.0, count=70).requests(0))) == 40  # type: ignore[arg-type]
    assert list(Synthetic(**base, duration_s=0.1).requests(0)) == []  # type: ignore[arg-type]


def test_prefixes_lengthen_prompts_and_chain_their_blocks() -> None:
    """80% of requests carry one of 4 prefixes of 100 tokens, 6 whole blocks of 16; groups share no block."""
    prefix = SharedPrefix(groups=4, tokens=100, share=0.8)
    plain = Synthetic(arrivals=Poisson(1), prompt_lengths=Fixed(50), output_lengths=Fixed(1), count=20_000)
    shared = Synthetic(
        arrivals=Poisson(1), prompt_lengths=Fixed(50), output_lengths=Fixed(1), count=20_000, prefix=prefix
    )
    made = list(shared.requests(1))
    groups = Counter(r.block_hashes for r in made)
    assert {r.prompt_tokens for r in made if r.block_hashes} == {150}
    assert {r.prompt_tokens for r in made if not r.block_hashes} == {50}
    assert groups[()] / len(made) == pytest.approx(0.2, abs=0.01)
    assert sorted(len(key) for key in groups) == [0, 6, 6, 6, 6]
    assert len({block for key in groups for block in key}) == 24
    assert shared.mean_prompt_tokens == pytest.approx(plain.mean_prompt_tokens + 80)


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    """Where a run ends changes no request before its end, prefixes included."""
    long = Synthetic(
        arrivals=Poisson(1),
        prompt_lengths=Lognormal(60, 1),
        output_lengths=Uniform(1, 9),
        count=30_000,
        prefix=SharedPrefix(9, 64, share=0.5),
    )
    for count in (1, 100, 20_000):
        assert list(replace(long, count=count).requests(5)) == list(long.requests(5))[:count]
    assert list(replace(long, count=None, duration_s=50.0).requests(5)) == [
        request for request in long.requests(5) if request.arrival_s <= 50.0
    ]


def test_closed_loop_yields_shapes_in_order() -> None:
    """A closed loop gives its number of shapes, the same under the same seed, without arrival times."""
    loop = ClosedLoop(8, 0.5, Uniform(1, 100), Uniform(1, 100), 20_000)
    made = list(loop.shapes(2))
    assert made == list(loop.shapes(2))
    assert [r.serial for r in made] == list(range(20_000))
    assert {r.arrival_s for r in made} == {0.0}
    assert "closed loop of 8" in loop.title


def test_synthetic_is_a_workload() -> None:
    """The type checker and the title agree that it is a Workload at its rate."""
    workload: Workload = CHAT
    assert workload.rate_per_s == 2.0
    assert workload.at_rate(3.0).rate_per_s == 3.0
    assert "Poisson 2/s" in workload.title


def test_what_cannot_be_is_refused() -> None:
    """No end, no request, a negative time to think, a share above 1 and a negative seed are each an InputError."""
    wrong: list[Callable[[], object]] = [
        lambda: Synthetic(arrivals=Poisson(1), prompt_lengths=Fixed(1), output_lengths=Fixed(1)),
        lambda: Synthetic(arrivals=Poisson(1), prompt_lengths=Fixed(1), output_lengths=Fixed(1), count=0),
        lambda: Synthetic(arrivals=Poisson(1), prompt_lengths=Fixed(1), output_lengths=Fixed(1), duration_s=-1.0),
        lambda: ClosedLoop(0, 0.0, Fixed(1), Fixed(1), 10),
        lambda: ClosedLoop(1, -1.0, Fixed(1), Fixed(1), 10),
        lambda: SharedPrefix(1, 16, share=1.1),
        lambda: SharedPrefix(10**7, 10**7),
        lambda: list(CHAT.requests(-1)),
    ]
    for build in wrong:
        with pytest.raises(InputError):
            build()
