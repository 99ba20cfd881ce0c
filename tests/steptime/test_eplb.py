"""Copies and places of experts: DeepSeek's own example, arithmetic by hand, and what servers reported."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.deployment.expert_load import Counted
from servewise.steptime.eplb import placed
from servewise.steptime.imbalance import load_of
from servewise.steptime.routing import Routing

# The second layer of DeepSeek's example (deepseek-ai/EPLB, README, quoted in its issue 19): 12 experts of 4 groups
# over 2 nodes of 4 ranks, 16 slots. The groups of experts 6 to 11 go to the first node, those of 0 to 5 to the second.
EXAMPLE = [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27]
NODES: dict[tuple[int, ...], list[tuple[int, int]]] = {
    (6, 7, 8, 9, 10, 11): [(7, 10), (6, 8), (6, 11), (8, 9)],
    (3, 4, 5, 0, 1, 2): [(2, 4), (5, 1), (5, 0), (3, 1)],
}


@pytest.mark.parametrize("experts", NODES)
def test_deepseeks_own_example(experts: tuple[int, ...]) -> None:
    """On each node the ranks hold what the published result says."""
    found = placed(np.array([[float(EXAMPLE[each]) for each in experts]]), 8, 4)
    ranks = [tuple(experts[slot] for slot in rank) for rank in found.logical.reshape(4, 2).tolist()]

    assert ranks == NODES[experts]


def test_by_hand() -> None:
    """Loads 6, 3, 2, 1 in 6 slots: the 6 is copied to 3 + 3, then to 2 + 2 + 2; each rank has 4."""
    found = placed(np.array([[6.0, 3.0, 2.0, 1.0]]), 6, 3)

    assert found.copies.tolist() == [[3, 1, 1, 1]]
    loads = found.share(np.array([[6.0, 3.0, 2.0, 1.0]])).reshape(3, 2).sum(axis=1)
    assert sorted(loads.tolist()) == [4.0, 4.0, 4.0]


def test_without_copies_it_only_places() -> None:
    """Two hot experts side by side go to two ranks: 5 + 1 each in place of 9 + 3."""
    found = placed(np.array([[5.0, 5.0, 1.0, 1.0]]), 4, 2)

    assert found.share(np.array([[5.0, 5.0, 1.0, 1.0]])).reshape(2, 2).sum(axis=1).tolist() == [6.0, 6.0]


@given(st.integers(1, 8), st.integers(1, 5), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_every_expert_lies_somewhere(ranks: int, room: int, experts: int, seed: int) -> None:
    """All experts have a slot, copies are numbered from 0 on, all load is shared out, and ranks hold as many each."""
    slots = max(ranks * room, -(-experts // ranks) * ranks)
    loads = np.random.default_rng(seed).exponential(size=(3, experts))
    found = placed(loads, slots, ranks)

    assert found.share(loads).sum(axis=1) == pytest.approx(loads.sum(axis=1))
    for layer in range(3):
        which = sorted(zip(found.logical[layer].tolist(), found.copy[layer].tolist(), strict=True))
        assert which == [(expert, copy) for expert in range(experts) for copy in range(found.copies[layer, expert])]


def test_deepseek_r1_after_rebalancing() -> None:
    """TensorRT-LLM reports 1.115 for R1 with 288 slots over 36 ranks, 1,024 routed tokens a rank; traffic drifts."""
    load = load_of(Routing(experts=256, chosen=8, ranks=36, redundant=32))

    assert load.hottest(36 * 1024 // 8) == pytest.approx(1.115, rel=0.08)


def test_placing_alone_mends_most() -> None:
    """Without a copy most of the excess goes, with 64 more: ROCm/ATOM's pull 1210 reports +17% and +24% throughput."""
    before, moved, copied = (
        load_of(Routing(experts=256, chosen=8, ranks=8, redundant=each)).hottest(8192) for each in (None, 0, 64)
    )

    assert moved - 1 < 0.5 * (before - 1)
    assert copied <= moved


def test_copies_share_their_experts_tokens() -> None:
    """One expert of four that all tokens choose has 4 times the mean; of its 5 copies in 8 slots a rank gets two."""
    one = Counted(((1.0, 0.0, 0.0, 0.0),), "by hand")
    alone, copied = (
        load_of(Routing(experts=4, chosen=1, ranks=4, load=one, redundant=each)).hottest(100_000) for each in (None, 4)
    )

    assert alone == 4.0
    assert copied == pytest.approx(4 * 2 / 5, rel=0.02)
