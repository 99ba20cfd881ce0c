"""A request's reply never depends on what else is in its batch, whatever the policy, chunks, preemptions and hits."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import first_come
from tests.engine.running.fake import FakeModel, config, reply_alone

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.engine.running.engine import Engine
from servewise.engine.sampling_settings import SamplingSettings

BLOCK = 4

policies = (
    st.builds(Static, st.integers(1, 5)) | st.builds(Dynamic, st.integers(1, 5), st.just(0.0)) | first_come(6, (6, 40))
)
sampled = st.builds(
    SamplingSettings,
    max_tokens=st.integers(1, 25),
    temperature=st.sampled_from([0.0, 0.7, 1.0, 2.0]),
    top_k=st.sampled_from([0, 0, 1, 5]),
    top_p=st.sampled_from([1.0, 0.9, 0.3]),
    min_p=st.sampled_from([0.0, 0.0, 0.2]),
    presence_penalty=st.sampled_from([0.0, 1.5]),
    frequency_penalty=st.sampled_from([0.0, -0.5]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    seed=st.integers(0, 5),
    logprobs=st.none() | st.integers(0, 3),
    ignore_end=st.booleans(),
)


@st.composite
def prompts(draw: st.DrawFn, vocabulary: int = 40) -> list[int]:
    """A prompt with a beginning that others share."""
    common = [draw(st.integers(0, 2))] * draw(st.integers(0, 20))
    return common + draw(st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=20))


Asked = tuple[list[int], SamplingSettings]


def told(engine: Engine, asked: list[Asked]) -> list[tuple[Any, ...]]:
    """What each of ``asked`` got, all submitted at once."""
    handles = [engine.submit(prompt, each) for prompt, each in asked]
    engine.run_until_idle()
    return [(each.choices, each.finish_reason) for each in handles]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(prompts(), sampled), min_size=1, max_size=10), policies, st.integers(17, 40))
def test_sampled_replies_are_those_of_a_request_alone(asked: list[Asked], policy: Policy, blocks: int) -> None:
    """Tokens, log probabilities and finish reason equal those of the request alone in an engine with room for all."""
    facts = config(end=(3,))
    together = told(Engine(FakeModel(facts), policy, blocks=blocks, block_tokens=BLOCK), asked)
    alone = [told(Engine(FakeModel(facts), Continuous(), blocks=64), [each])[0] for each in asked]

    assert together == alone


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(prompts(), st.integers(1, 25)), min_size=1, max_size=10), policies, st.integers(17, 40))
def test_greedy_replies_need_no_engine(asked: list[tuple[list[int], int]], policy: Policy, blocks: int) -> None:
    """Greedy replies are those of a plain loop over the model without cache or batch."""
    engine = Engine(FakeModel(), policy, blocks=blocks, block_tokens=BLOCK)
    handles = [engine.submit(prompt, SamplingSettings(max_tokens=count, temperature=0.0)) for prompt, count in asked]
    engine.run_until_idle()

    assert [each.output for each in handles] == [reply_alone(prompt, count) for prompt, count in asked]
