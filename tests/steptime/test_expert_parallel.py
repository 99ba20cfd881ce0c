"""Experts spread over ranks: the fullest rank's work and the messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.steptime.known import LLAMA_31_8B, deployed

from servewise.deployment.deployment import Deployment
from servewise.deployment.expert_load import EVEN, Counted, Drawn
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.spec import FeedForward
from servewise.steptime.api import estimator_for
from servewise.steptime.expert_parallel import AllToAll, HotRank, all_to_all_of, hot_rank
from servewise.steptime.gemms import layer_gemms
from servewise.steptime.imbalance import load_of
from servewise.steptime.link import LinkTime, link_time
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.messages import Messages
from servewise.steptime.routing import Routing
from servewise.steptime.shape import decode_shape, prefill_shape

EXPERTS = FeedForward(experts=64, experts_per_token=4, expert_parameters=3 * 4096 * 1024)
MIXTURE = replace(LLAMA_31_8B, layers=tuple(replace(each, feed_forward=EXPERTS) for each in LLAMA_31_8B.layers))


def mixture(*, expert: bool = True, tensor: int = 8, data: int = 1, engine: str = "vllm") -> Deployment:
    """32 layers of 64 experts, 4 to a token, on H100s."""
    return deployed(MIXTURE, load_accelerator("h100-sxm"), tensor=tensor, data=data, expert=expert, engine=engine)


def test_slices_of_every_expert_are_even() -> None:
    """Tensor parallelism cuts each expert: no rank is fuller than another."""
    assert hot_rank(mixture(expert=False), EXPERTS) is None
    assert hot_rank(mixture(tensor=1), EXPERTS) is None


def test_uneven_experts_make_the_step_wait() -> None:
    """With an uneven load a step takes longer than with an even one, and says on what assumption."""
    sliced, whole = estimator_for(mixture(expert=False)), estimator_for(mixture())
    even = estimator_for(replace(mixture(), expert_load=EVEN))

    for shape in (decode_shape(64, 500), prefill_shape(4, 2000)):
        assert whole.seconds(shape) > even.seconds(shape)
    assert "expert-imbalance" in {each.code for each in whole.caveats}
    assert "expert-imbalance" not in {each.code for each in sliced.caveats}


@pytest.mark.parametrize(("tensor", "data"), [(8, 1), (4, 2), (2, 8)])
def test_all_ranks_together_move_what_one_alone_would(tensor: int, data: int) -> None:
    """Each token's values go to 4 of 64 experts, wherever these lie; with slices every rank moves them all.

    By hand, up: 4 x (4,096 values of 2 bytes in, 2 x 1,024 of 2 bytes out); down: 4 x (1,024 in, 4,096 out).
    """
    by_hand = [4 * (4096 * 2 + 2 * 1024 * 2), 4 * (1024 * 2 + 4096 * 2)]
    slices = [4 * (4096 * 2 + 2 * 1024 * 2 / tensor), 4 * (1024 * 2 / tensor + 4096 * 2)]
    whole, sliced = mixture(tensor=tensor, data=data), mixture(expert=False, tensor=tensor, data=data)

    assert [each.activation_bytes_per_token * tensor for each in layer_gemms(whole)[-2:]] == pytest.approx(by_hand)
    assert [each.activation_bytes_per_token for each in layer_gemms(sliced)[-2:]] == pytest.approx(slices)


def test_the_fullest_rank_by_hand() -> None:
    """Its products have the even rank's tokens times the fullest rank's share, and read what it holds at most."""
    hot = hot_rank(mixture(data=2, tensor=4), EXPERTS)
    assert hot is not None
    routed = [each for each in layer_gemms(mixture(data=2, tensor=4)) if each.hot is not None]

    assert hot.replicas == 2
    assert len(routed) == 2
    for each in routed:
        assert each.work_tokens(100) == 100 * load_of(Routing(experts=64, chosen=4, ranks=8)).hottest(200)
        assert each.read_bytes(10_000) == pytest.approx(each.weights.bytes)
        assert each.read_bytes(1) >= each.weights.bytes / 8  # at least one expert of the eight on the rank


def test_even_experts_and_many_tokens_cost_what_slices_cost() -> None:
    """With infinite concentration the fullest rank of a large prefill has the mean's work."""
    hot = hot_rank(replace(mixture(), expert_load=EVEN), EXPERTS)

    assert hot is not None
    assert hot.tokens(1_000_000) == pytest.approx(1_000_000, rel=0.02)


def test_all_to_all_by_hand() -> None:
    """512 tokens x 4 experts x 4,096 values: 1 byte each there, 2 back, 15/16 of them to other ranks."""
    link = LinkTime(latency_s=5e-6, bytes_per_s=100e9)
    values = 512 * 4 * 4096 * 15 / 16

    assert AllToAll(4, 4096, 16, 1.0, 1.0, link).seconds(512) == pytest.approx(2 * 5e-6 + 3 * values / 100e9)
    assert AllToAll(4, 4096, 16, 1.0, 1.0, link).seconds(0) == 0.0
    even = load_of(Routing(experts=16, chosen=16, ranks=16))
    assert AllToAll(4, 4096, 16, 1.0, 1.0, link, HotRank(even, 1)).seconds(512) == pytest.approx(
        AllToAll(4, 4096, 16, 1.0, 1.0, link).seconds(512)
    )


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
def test_engines_that_send_tokens_to_their_experts(engine: str) -> None:
    """Over data-parallel ranks the messages are a layer's all-reduce of attention and its experts' all-to-all."""
    where = mixture(tensor=1, data=8, engine=engine)
    found = Messages(where, coefficients_for(where).coefficients).seconds(256)

    assert all_to_all_of(where, EXPERTS).link == link_time("h100-sxm")
    assert found == pytest.approx(32 * all_to_all_of(where, EXPERTS).seconds(256))


def test_messages_grow_with_tokens_and_ranks() -> None:
    """More tokens, and a larger part of the experts elsewhere, never take less time."""
    link = LinkTime(latency_s=5e-6, bytes_per_s=100e9)
    by_tokens = [AllToAll(4, 4096, 8, 1.0, 1.0, link).seconds(each) for each in (0, 1, 10, 1000)]
    by_ranks = [AllToAll(4, 4096, each, 1.0, 1.0, link).seconds(100) for each in (2, 4, 8, 64)]

    assert by_tokens == sorted(by_tokens)
    assert by_ranks == sorted(by_ranks)


def balanced(copies: int | None, load: Drawn | Counted = EVEN) -> Deployment:
    """The mixture on 8 ranks with that many copies."""
    split = replace(mixture().parallelism, redundant_experts=copies)
    return replace(mixture(), parallelism=split, expert_load=load)


def test_a_counted_hot_expert_by_hand() -> None:
    """A quarter of all choices go to one expert, the rest evenly to 63: its rank has 3 in 8 of 512 tokens x 4."""
    hot = hot_rank(balanced(None, Counted(((21.0, *[1.0] * 63),), "by hand")), EXPERTS)

    assert hot is not None
    share = 0.25 + 7 * 0.75 / 63
    assert hot.tokens(100_000) == pytest.approx(100_000 * share * 8, rel=0.01)


def test_copies_are_read_too() -> None:
    """A rank with 10 slots for its 8 experts' share reads 10 experts at many tokens, and never less than without."""
    plain, copied = ([g for g in layer_gemms(balanced(each)) if g.hot] for each in (None, 16))

    for one, other in zip(plain, copied, strict=True):
        assert other.read_bytes(100_000) == pytest.approx(one.read_bytes(100_000) * 10 / 8)
        assert other.weights == one.weights  # the floor is that of the experts without copies


def test_the_caveat_names_the_option_and_the_source() -> None:
    """Whatever the load is from, a reader learns how to change it and what it makes of the fullest rank."""
    counted = Counted((tuple([1.0] * 64),), "mine.json")
    for load, words in (
        (Drawn(0.46), "DeepSeek-R1"),
        (Drawn(0.2), "dirichlet:0.2"),
        (EVEN, "chance"),
        (counted, "mine"),
    ):
        (found,) = (each for each in estimator_for(balanced(16, load)).caveats if each.code == "expert-imbalance")
        assert words in found.message
        assert "--expert-load" in found.message
        assert "--expert-load" in found.cure
        assert "16 copies (--redundant-experts)" in found.message


def test_the_ideal_roofline_says_that_it_takes_experts_as_even() -> None:
    """A load that was asked for is not ignored in silence, nor is a bound made of it."""
    hot = balanced(None, Drawn(0.1))
    shape = prefill_shape(4, 2000)

    assert [each.code for each in estimator_for(hot, "ideal").caveats] == ["expert-load-unused"]
    assert estimator_for(hot, "ideal").seconds(shape) == estimator_for(balanced(None), "ideal").seconds(shape)


def test_measured_steps_have_their_own_load(tmp_path: Path) -> None:
    """A table's steps do not change with an option, which is said; a served roofline's do, with their caveat."""
    table = tmp_path / "steps.csv"
    table.write_text("batch,context_tokens,step_s\n1,1000,0.01\n8,1000,0.02\n", encoding="utf-8")
    hot = balanced(None, Drawn(0.1))

    assert "expert-load-unused" in {each.code for each in estimator_for(hot, str(table)).caveats}
    assert "expert-load-unused" not in {each.code for each in estimator_for(mixture(), str(table)).caveats}
    assert "expert-imbalance" in {each.code for each in estimator_for(hot, "served").caveats}
