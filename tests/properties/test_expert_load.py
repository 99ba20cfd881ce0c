"""The more unevenly experts are called on, the longer a step takes that reads them all.

Not so of a small one: where few tokens call few experts, a concentrated load reads fewer of them.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.steptime.known import deployed
from tests.steptime.test_expert_parallel import MIXTURE

from servewise.deployment.deployment import Deployment
from servewise.deployment.expert_load import EVEN, Counted, Drawn
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.spec import FeedForward
from servewise.steptime.api import estimator_for
from servewise.steptime.imbalance import load_of
from servewise.steptime.routing import Routing
from servewise.steptime.shape import prefill_shape

CHANCE = 0.02  # of the fullest rank's tokens, at these many
TOKENS = 65_536
EXPERTS = 16


@st.composite
def counted(draw: st.DrawFn) -> Counted:
    """One to three layers of 16 experts."""
    row = st.lists(st.integers(0, 100), min_size=EXPERTS, max_size=EXPERTS).filter(any)
    rows = draw(st.lists(row, min_size=1, max_size=3))
    return Counted(tuple(tuple(map(float, each)) for each in rows), "drawn")


def mixed(load: Counted, part: float) -> Counted:
    """``part`` of that load and the rest even: the more of it, the less even (each majorises the one before)."""
    rows = (tuple(part * each / sum(row) + (1 - part) / EXPERTS for each in row) for row in load.tokens)
    return Counted(tuple(rows), "mixed")


def one_a_token(load: Counted | Drawn, ranks: int, copies: int | None = None) -> Deployment:
    """A mixture of 16 experts, of which a token chooses one."""
    part = FeedForward(experts=EXPERTS, experts_per_token=1, expert_parameters=3 * 4096 * 1024)
    model = replace(MIXTURE, layers=tuple(replace(each, feed_forward=part) for each in MIXTURE.layers))
    made = deployed(model, load_accelerator("h100-sxm"), tensor=ranks, expert=True)
    return replace(made, expert_load=load, parallelism=replace(made.parallelism, redundant_experts=copies))


@settings(max_examples=40, deadline=None)
@given(counted(), st.sampled_from([2, 4, 8]), st.floats(0, 1), st.floats(0, 1))
def test_less_even_loads_take_no_less_time(load: Counted, ranks: int, one: float, other: float) -> None:
    """The expected largest of several counts grows with their chances' unevenness (Schur-convex; Rinott 1973)."""
    less, more = sorted((one, other))
    shape = prefill_shape(8, TOKENS // 8)
    even, first, second = (
        estimator_for(one_a_token(each, ranks)).seconds(shape) for each in (EVEN, mixed(load, less), mixed(load, more))
    )

    assert even * (1 - CHANCE) <= first <= second * (1 + CHANCE)


@settings(max_examples=40, deadline=None)
@given(counted(), st.sampled_from([2, 4, 8]), st.integers(0, 3))
def test_no_rank_beats_the_mean(load: Counted, ranks: int, rooms: int) -> None:
    """Nor does EPLB: what it leaves is at least even, and no more than a rank with every hot expert would have."""
    for copies in (None, rooms * ranks):
        found = load_of(Routing(experts=EXPERTS, chosen=1, ranks=ranks, load=load, redundant=copies))
        assert 1.0 <= found.hottest(TOKENS) <= ranks * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(counted(), st.sampled_from([2, 4, 8]))
def test_a_copy_on_every_rank_evens_all(load: Counted, ranks: int) -> None:
    """With so many copies that each slot has little, ranks are even but for chance and what a slot holds."""
    copies = 8 * EXPERTS
    found = load_of(Routing(experts=EXPERTS, chosen=1, ranks=ranks, load=load, redundant=copies))
    largest = 1 / copies  # of all tokens, in a slot: each copy was made of no less than what the fullest slot is left

    assert found.hottest(TOKENS) <= 1 + CHANCE + ranks * largest
