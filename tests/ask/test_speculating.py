"""Options on speculation: what they build, and which are refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from servewise.ask.deploying import deploy
from servewise.ask.speculating import Speculating, SpeculationOptions, speculating, speculation_row
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Continuous, Static
from servewise.batching.speculative.tally import Tally
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.errors import InputError, UnknownName
from servewise.plan.clock import clock_for
from servewise.simulate.run import simulate
from servewise.simulate.speculating.drafters import DraftModel, Heads, Ngram
from servewise.simulate.speculating.memory import NOTHING
from servewise.workload.request import Request

TARGET = deploy("llama-3.1-8b", "h100-sxm")


def built(speculate: str, **more: Any) -> Speculating:
    """A speculation of that method at an acceptance of 0.7."""
    options = SpeculationOptions(**{"speculate": speculate, "acceptance": 0.7, **more})
    return speculating(TARGET, clock_for(TARGET, None), options)


def test_each_method_has_its_drafter_and_takes_its_memory() -> None:
    """A lookup takes nothing; a draft model, a head and a block of heads take weights, only the first two KV."""
    kinds = {each: built(each).speculation for each in ("ngram", "draft:llama-3.2-1b", "eagle", "eagle3", "medusa")}

    assert isinstance(kinds["ngram"].drafter, Ngram)
    assert isinstance(kinds["medusa"].drafter, Heads)
    assert all(isinstance(kinds[each].drafter, DraftModel) for each in ("draft:llama-3.2-1b", "eagle", "eagle3"))
    assert kinds["ngram"].taken == NOTHING
    assert kinds["medusa"].taken.kv_bytes_per_token == 0 < kinds["medusa"].taken.weight_bytes
    assert kinds["draft:llama-3.2-1b"].taken.kv_bytes_per_token == 16 * 2 * 8 * 64 * 2
    assert kinds["eagle"].taken.weight_bytes < kinds["eagle3"].taken.weight_bytes


def test_a_checkpoints_own_layer_drafts() -> None:
    """DeepSeek-V3 has a multi-token prediction layer, Llama has none."""
    target = deploy("deepseek-v3", "h200", tp=8)
    options = SpeculationOptions(speculate="mtp", acceptance=0.85, draft_tokens=1)

    assert speculating(target, clock_for(target, None), options).speculation.drafter.name == "deepseek-v3 MTP"
    with pytest.raises(InputError, match="no multi-token prediction layer"):
        built("mtp")


def test_acceptance_is_one_rate_or_one_a_position() -> None:
    """0.7, "0.7", and "0.8,0.7" in text or as numbers."""
    assert built("ngram").speculation.acceptance.by_position == (0.7,)
    assert built("ngram", acceptance="0.8,0.7").speculation.acceptance.by_position == (0.8, 0.7)
    assert built("ngram", acceptance=[0.8, 0.7], hit_rate=0.5).speculation.acceptance.chances(2) == (0.4, 0.7)


def test_the_draft_takes_from_the_pool() -> None:
    """Fewer blocks with a draft model beside, as many with a lookup."""
    capacity = kv_capacity(TARGET)
    assert isinstance(capacity, KvCapacity)

    assert built("ngram").blocks(capacity) == capacity.blocks
    assert 0.5 * capacity.blocks < built("draft:llama-3.2-1b").blocks(capacity) < capacity.blocks


@pytest.mark.parametrize(
    "length", [{}, {"speculate_until_batch": 4}, {"draft_length": "best"}, {"draft_length": "measured"}]
)
def test_a_run_with_it_is_counted(length: dict[str, Any]) -> None:
    """Sixteen requests that end one by one: a verification gives 1 to K + 1 tokens, and all tokens are told of."""
    found = built("eagle3", draft_tokens=4, **length)
    policy, tally = found.policy(Continuous(8)).counted()
    requests = [Request(serial, 0.0, 100, 40 + 5 * serial) for serial in range(16)]
    run = simulate(requests, policy, found.speculation.target, beside=found.speculation.beside)
    row = speculation_row(tally)

    assert 1 < row["tokens_per_verification"] < 5
    assert tally.gained + tally.plain == sum(run.requests.output_tokens) - 16
    assert row["drafted_tokens"] <= 4 * row["verifications"]
    assert policy.describe.startswith(Continuous(8).describe)


def test_plain_rows_are_told_of_as_such() -> None:
    """Nothing drafted: one token a verification by convention, no acceptance."""
    assert speculation_row(Tally(plain=7)) == {
        "tokens_per_verification": 1.0,
        "drafted_tokens": 0,
        "verifications": 0,
        "acceptance_by_position": [],
        "undrafted_tokens": 7,
    }


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"speculate": "draft:"}, "draft model is missing"),
        ({"speculate": "magic"}, "magic"),
        ({"speculate": "draft:no-such-model"}, "no-such-model"),
        ({"acceptance": "0.7,x"}, "list of rates"),
        ({"acceptance": 1.5}, "0 to 1"),
        ({"acceptance": []}, "at least one"),
        ({"draft_tokens": 0}, "whole number"),
        ({"draft_tokens": 1000}, "whole number"),
        ({"draft_length": "long"}, "long"),
        ({"draft_length": "best", "speculate_until_batch": 8}, "fixed"),
        ({"speculate_until_batch": 0}, "whole number"),
        ({"speculate": "eagle", "hit_rate": 0.5}, "n-gram"),
        ({"draft_overhead": -1.0}, "zero or more"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, Any], word: str) -> None:
    """One line that names the setting."""
    with pytest.raises((InputError, UnknownName), match=word):
        built(**{"speculate": "ngram", **more})


def test_whole_batches_do_not_speculate() -> None:
    """Static batching is refused."""
    with pytest.raises(InputError, match="does not speculate"):
        built("ngram").policy(Static(8))


def test_another_clock_for_the_same_speculation() -> None:
    """A replicate by a slower target verifies by that clock."""
    found = built("ngram").speculation
    assert found.timed_by(clock_for(TARGET, "ideal")).target.name == "ideal"


@pytest.mark.parametrize(
    "length", [{}, {"speculate_until_batch": 4}, {"draft_length": "best"}, {"draft_length": "measured"}]
)
def test_workers_can_be_sent_it(length: dict[str, Any]) -> None:
    """A speculation goes through pickle, as runs over processes need."""
    found = built("eagle3", **length).speculation
    again = pickle.loads(pickle.dumps(found))

    assert again.words == found.words
    assert again.policy(Continuous(8)).batcher(BlockPool(None, 16)).group.size == 0
