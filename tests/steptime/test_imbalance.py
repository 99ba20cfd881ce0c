"""Expert load imbalance against sampling token by token, closed forms and what a server reported."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servewise.deployment.expert_load import EVEN, R1, Counted, Drawn
from servewise.steptime.imbalance import load_of
from servewise.steptime.routing import Routing


def sampled(routing: Routing, concentration: float, tokens: int, draws: int = 400) -> tuple[float, float]:
    """(fullest rank over the mean, most experts read on a rank) by letting every token choose."""
    rng = np.random.default_rng(99)
    per_rank = routing.experts // routing.ranks
    fullest, widest = [], []
    for _ in range(draws):
        popularity = rng.dirichlet(np.full(routing.experts, concentration))
        with np.errstate(divide="ignore"):
            keys = np.log(popularity) + rng.gumbel(size=(tokens, routing.experts))
        chosen = np.argpartition(-keys, routing.chosen - 1, axis=1)[:, : routing.chosen]
        counts = np.bincount(chosen.ravel(), minlength=routing.experts).reshape(routing.ranks, per_rank)
        fullest.append(counts.sum(axis=1).max())
        widest.append((counts > 0).sum(axis=1).max())
    mean = tokens * routing.chosen / routing.ranks
    return float(np.mean(fullest)) / mean, float(np.mean(widest))


@pytest.mark.parametrize("tokens", [1, 5, 40, 300])
@pytest.mark.parametrize(
    ("experts", "chosen", "ranks", "concentration"), [(64, 6, 8, 0.5), (8, 2, 4, 5.0), (128, 8, 32, 1.0)]
)
def test_as_sampling_finds_it(experts: int, chosen: int, ranks: int, concentration: float, tokens: int) -> None:
    """Expected maxima are within 10% of letting each token choose its experts by popularity."""
    routing = Routing(experts=experts, chosen=chosen, ranks=ranks, load=Drawn(concentration))
    fullest, widest = sampled(routing, concentration, tokens)

    assert load_of(routing).hottest(tokens) == pytest.approx(fullest, rel=0.1)
    assert load_of(routing).experts_read(tokens) == pytest.approx(widest, rel=0.1)


def test_even_popularity_and_many_tokens_are_even() -> None:
    """With infinite concentration the fullest rank nears the mean; at few tokens chance alone makes it uneven."""
    load = load_of(Routing(experts=256, chosen=8, ranks=32, load=EVEN))

    assert load.hottest(100_000) == pytest.approx(1.0, abs=0.02)
    assert load.hottest(10**9) == pytest.approx(1.0, abs=0.02)
    assert load.hottest(1) > 4
    assert load.experts_read(100_000) == pytest.approx(8)


def test_few_tokens_by_hand() -> None:
    """One token of one expert: its rank has all of it; all experts chosen: every rank has its own."""
    assert load_of(Routing(experts=16, chosen=1, ranks=4)).hottest(1) == 4.0
    assert load_of(Routing(experts=16, chosen=1, ranks=4)).experts_read(1) == 1.0
    every = load_of(Routing(experts=16, chosen=16, ranks=4))
    assert (every.hottest(3), every.experts_read(3)) == (1.0, 4.0)


def test_large_batches_are_ranks_times_the_largest_share() -> None:
    """With two experts on two ranks, each token choosing one, the fuller rank tends to the mean of max(p, 1 - p)."""
    # Dirichlet(1, 1) makes p uniform: E max(p, 1 - p) = 3/4, over a mean share of 1/2.
    load = load_of(Routing(experts=2, chosen=1, ranks=2, load=Drawn(1.0)))

    assert load.hottest(10**6) == pytest.approx(1.5, rel=0.06)


@pytest.mark.parametrize("concentration", [0.1, R1, 10.0, math.inf])
def test_loads_grow_with_tokens(concentration: float) -> None:
    """More tokens never load the fullest rank less, nor read fewer experts."""
    load = load_of(Routing(experts=60, chosen=4, ranks=7, load=Drawn(concentration)))
    numbers = [1, 2, 3, 7, 8, 9, 20, 100, 1000, 5000, 131_072, 200_000]
    routed = [load.hottest(each) * each for each in numbers]

    assert routed == sorted(routed)
    assert [load.experts_read(each) for each in numbers] == sorted(load.experts_read(each) for each in numbers)
    assert all(load.hottest(each) >= 1.0 for each in numbers)


def test_the_seed_decides() -> None:
    """Equal seeds give equal loads, others others."""
    one, same, other = (Routing(experts=64, chosen=4, ranks=8, seed=seed) for seed in (1, 1, 2))

    assert load_of(one) == load_of(same)
    assert load_of(one).tokens != load_of(other).tokens


def test_deepseek_r1_over_32_ranks() -> None:
    """TensorRT-LLM's example reports 2.56 times the mean on the hottest rank; the fit to the spread gives 15% less."""
    load = load_of(Routing(experts=256, chosen=8, ranks=32))

    assert load.hottest(4096) == pytest.approx(2.564, rel=0.15)


@pytest.mark.parametrize("tokens", [8, 16, 64, 1024])
def test_even_experts_are_a_fair_coin(tokens: int) -> None:
    """Of n tokens on two even ranks the fuller has n/2 (1 + C(n, n/2) / 2^n), the coin's mean deviation."""
    load = load_of(Routing(experts=16, chosen=1, ranks=2, load=EVEN))

    assert load.hottest(tokens) == pytest.approx(1 + math.comb(tokens, tokens // 2) / 2**tokens, abs=0.04)


@pytest.mark.parametrize("concentration", [0.05, R1, 2.0, 20.0])
def test_two_ranks_have_betas_mean_deviation(concentration: float) -> None:
    """Half of 8 experts' Dirichlet shares is Beta(a, a), a = 4 c: many tokens make 1 + 2 E|B - 1/2| of the mean."""
    load = load_of(Routing(experts=8, chosen=1, ranks=2, load=Drawn(concentration)))
    a = 4 * concentration
    beta = math.exp(2 * math.lgamma(a) - math.lgamma(2 * a))

    assert load.hottest(10**6) == pytest.approx(1 + 2 / (a * 4**a * beta), abs=0.08)


def test_lower_concentrations_are_less_even() -> None:
    """The larger the concentration, the nearer to even; endless and very large ones are the same."""
    steps = [0.01, 0.1, R1, 2.0, 10.0, 1e6, math.inf]
    found = [load_of(Routing(experts=256, chosen=8, ranks=32, load=Drawn(each))).hottest(4096) for each in steps]

    assert found[:5] == sorted(found[:5], reverse=True)
    assert found[4] > found[5] == pytest.approx(found[6], rel=0.01)


def test_a_hot_expert_that_was_counted() -> None:
    """65 of 100 tokens to one expert of 8, 5 to each other: its rank of two has 70 of 100 where the mean has 25."""
    load = load_of(Routing(experts=8, chosen=1, ranks=4, load=Counted(((65.0, *[5.0] * 7),), "by hand")))

    assert load.hottest(100_000) == pytest.approx(0.7 / 0.25, rel=0.005)


def test_an_expert_that_every_token_chooses() -> None:
    """Half of the choices of two a token are one expert's: its rank has 1 + 1/7 of each token, the mean rank a half."""
    load = load_of(Routing(experts=8, chosen=2, ranks=4, load=Counted(((7.0, *[1.0] * 7),), "by hand")))

    assert load.hottest(100_000) == pytest.approx((1 + 1 / 7) / 0.5, rel=0.005)
    assert load.hottest(1) >= 2.0  # whatever the second, the first is always there


def test_experts_that_nobody_calls_are_not_read() -> None:
    """Counted in two layers, one expert of each rank's two gets nothing: a step reads the other alone."""
    load = load_of(
        Routing(experts=4, chosen=1, ranks=2, load=Counted(((3.0, 0.0, 0.0, 1.0), (1.0, 0.0, 1.0, 0.0)), ""))
    )

    assert load.experts_read(100_000) == 1.0
    assert load.hottest(100_000) == pytest.approx((1.5 + 1.0) / 2, rel=0.02)  # the layers' mean


@pytest.mark.parametrize("tokens", [1, 3, 5, 40])
def test_counted_as_sampling_finds_it(tokens: int) -> None:
    """Few tokens, two experts each: within 10% of Madow's systematic sampling, whose chances are the counted ones."""
    counts, draws, rng = np.array([4.0, 3.0, 3.0, 2.0, 2.0, 1.0, 0.5, 0.5]), 3000, np.random.default_rng(5)
    order = rng.permuted(np.tile(np.arange(8), (draws * tokens, 1)), axis=1)
    ends = np.cumsum(counts[order] / 8, axis=1)  # of 16 choices 8 are first ones: chances sum to 2
    at = rng.random((draws * tokens, 1)) + np.arange(2)
    chosen = np.take_along_axis(order, (ends[:, None, :] <= at[:, :, None]).sum(axis=2).clip(0, 7), axis=1)
    ranks = np.eye(4)[chosen.reshape(draws, tokens * 2) // 2].sum(axis=1)
    fullest = ranks.max(axis=1).mean()
    load = load_of(Routing(experts=8, chosen=2, ranks=4, load=Counted((tuple(counts.tolist()),), "drawn")))

    assert load.hottest(tokens) == pytest.approx(fullest / (tokens * 2 / 4), rel=0.1)
