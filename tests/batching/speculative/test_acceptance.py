"""Which draft tokens stand: the chances that were asked for, from the sequence and its place alone."""

from __future__ import annotations

import math

import pytest

from servewise.batching.speculative.acceptance import Acceptance, Draws, mixed
from servewise.errors import InputError
from servewise.techniques.speculation import tokens_per_verification

DRAWN = 40_000


def test_mixing_is_splitmix64() -> None:
    """The first numbers of SplitMix64 from seed 1234567, as published with the generator (Vigna, splitmix64.c)."""
    gamma = 0x9E3779B97F4A7C15
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]

    assert [mixed(1234567 + step * gamma) for step in (1, 2, 3)] == expected


def test_a_draw_is_the_number_at_its_place() -> None:
    """SplitMix64's published numbers over 2^64 are 0.350, 0.174, 0.532: what hits at 60%, at 70%, and stands."""
    at_60, at_70 = Draws(Acceptance((0.5,), 0.6)), Draws(Acceptance((0.5,), 0.7))

    assert [at_60.hits(1234567, place) for place in (1, 2, 3)] == [False, False, True]
    assert [at_70.hits(1234567, place) for place in (1, 2, 3)] == [True, False, True]
    halves = Draws(Acceptance((0.5,)))  # two stand above 1 - 0.25, one above 1 - 0.5
    assert [halves.accepted(1234567, place, 2) for place in (1, 2, 3)] == [0, 0, 1]


@pytest.mark.parametrize(("acceptance", "k"), [(0.5, 1), (0.7, 4), (0.9, 7), (0.8, 3)])
def test_mean_tokens_are_the_closed_form(acceptance: float, k: int) -> None:
    """1 + accepted has the mean (1 - a^(K+1)) / (1 - a), within four standard errors of 40,000 draws."""
    draws = Draws(Acceptance((acceptance,)), seed=3)
    found = [draws.accepted(draws.stream(serial), place, k) for serial in range(200) for place in range(DRAWN // 200)]
    mean = 1 + sum(found) / DRAWN
    spread = math.sqrt(sum((1 + each - mean) ** 2 for each in found) / DRAWN / DRAWN)

    assert abs(mean - tokens_per_verification(acceptance, k)) < 4 * spread


def test_each_position_survives_as_often_as_it_should() -> None:
    """0.8, 0.5, 0.25 in turn: 80%, 40% and 10% of drafts reach so far, within four standard errors."""
    draws = Draws(Acceptance((0.8, 0.5, 0.25)), seed=1)
    stream = draws.stream(7)
    found = [draws.accepted(stream, place, 3) for place in range(DRAWN)]

    for place, share in enumerate((0.8, 0.4, 0.1), start=1):
        kept = sum(each >= place for each in found) / DRAWN
        assert abs(kept - share) < 4 * math.sqrt(share * (1 - share) / DRAWN)


def test_a_longer_draft_keeps_what_a_shorter_one_kept() -> None:
    """At one place of one sequence, K tokens keep the lesser of K and what more tokens keep."""
    draws = Draws(Acceptance((0.8,)))
    stream = draws.stream(0)

    for place in range(200):
        assert draws.accepted(stream, place, 2) == min(2, draws.accepted(stream, place, 5))


def test_sequences_and_seeds_draw_apart() -> None:
    """Another serial, or another seed, is another run of draws; the same is the same."""

    def drawn(seed: int, serial: int) -> list[int]:
        draws = Draws(Acceptance((0.7,)), seed)
        return [draws.accepted(draws.stream(serial), place, 4) for place in range(50)]

    assert drawn(0, 1) == drawn(0, 1)
    assert drawn(0, 1) != drawn(0, 2)
    assert drawn(0, 1) != drawn(1, 1)


def test_certain_and_impossible() -> None:
    """1 keeps all, 0 keeps none, and a lookup that never hits keeps none."""
    for acceptance, kept in ((Acceptance((1.0,)), 6), (Acceptance((0.0,)), 0), (Acceptance((1.0,), hit_rate=0.0), 0)):
        draws = Draws(acceptance)
        assert {draws.accepted(draws.stream(serial), 5, 6) for serial in range(100)} == {kept}


def test_logged_survival_is_read_back() -> None:
    """vLLM's log of EAGLE-3 on MT-Bench (issue 26191): 0.74, 0.54, 0.41, ... has a mean of 3.53 tokens."""
    logged = (0.74, 0.54, 0.41, 0.31, 0.23, 0.17, 0.13)
    acceptance = Acceptance.of_survival(logged)

    assert acceptance.survival(7) == pytest.approx(logged)
    assert 1 + sum(acceptance.survival(7)) == pytest.approx(3.53)


@pytest.mark.parametrize("by_position", [(), (1.1,), (0.5, -0.1), (math.nan,)])
def test_what_is_no_chance_is_refused(by_position: tuple[float, ...]) -> None:
    """An acceptance outside 0 to 1, or none at all, is an input error."""
    with pytest.raises(InputError):
        Acceptance(by_position)
