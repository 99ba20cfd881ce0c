"""The engine on a real network: a tiny random checkpoint in float64, under every policy."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import first_come
from tests.engine.tiny import tiny_checkpoint

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.load import load_decoder
from servewise.engine.running.engine import Engine
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.step import StepInput
from servewise.records.columns import COMPLETED, FAILED

BLOCK, VOCABULARY = 4, 320
policies = (
    st.builds(Static, st.integers(1, 4)) | st.builds(Dynamic, st.integers(1, 4), st.just(0.0)) | first_come(6, (6, 40))
)
sampled = st.builds(
    SamplingSettings,
    max_tokens=st.integers(1, 20),
    temperature=st.sampled_from([0.0, 1.0]),
    top_p=st.sampled_from([1.0, 0.8]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    seed=st.integers(0, 5),
)


@st.composite
def prompts(draw: st.DrawFn) -> list[int]:
    """A prompt with a beginning that others share."""
    common = [draw(st.integers(5, 6))] * draw(st.integers(0, 16))
    return common + draw(st.lists(st.integers(3, VOCABULARY - 1), min_size=1, max_size=16))


@pytest.fixture(scope="module", params=["llama", "mistral"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    """A float64 decoder, without and with an attention window."""
    torch.set_num_threads(1)
    window: dict[str, Any] = {"sliding_window": 9} if request.param == "mistral" else {}
    folder = tiny_checkpoint(tmp_path_factory.mktemp("tiny"), request.param, **window)
    return load_decoder(load_checkpoint(folder), dtype=torch.float64)


@torch.inference_mode()
def greedy_alone(model: Decoder, prompt: list[int], tokens: int) -> list[int]:
    """The greedy reply by whole recomputation: a fresh cache for every token."""
    so_far = list(prompt)
    for _ in range(tokens):
        count = len(so_far)
        step = StepInput(
            torch.tensor(so_far),
            torch.arange(count),
            torch.arange(count),
            (0, count),
            (count,),
            (tuple(range(-(-count // 16))),),
            torch.tensor([count - 1]),
        )
        so_far.append(int(model.step(step, model.new_cache(-(-count // 16), 16)).argmax()))
        if so_far[-1] in model.config.end_tokens:
            break
    return so_far[len(prompt) :]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(prompts(), sampled), min_size=1, max_size=7), policies, st.integers(13, 30))
def test_replies_do_not_depend_on_the_batch(
    model: Decoder, asked: list[tuple[list[int], SamplingSettings]], policy: Policy, blocks: int
) -> None:
    """Greedy and sampled replies in a crowd, in chunks, preempted or from cached prefixes, are those of each alone."""
    engine = Engine(model, policy, blocks=blocks, block_tokens=BLOCK)
    together = [engine.submit(prompt, each) for prompt, each in asked]
    engine.run_until_idle()
    for handle, (prompt, each) in zip(together, asked, strict=True):
        other = Engine(model, Continuous(), blocks=64)
        alone = other.submit(prompt, each)
        other.run_until_idle()

        assert handle.output == alone.output
        if each.greedy and not each.penalised:
            assert handle.output == greedy_alone(model, prompt, each.max_tokens)


@pytest.mark.parametrize("policy", [Continuous(4, 64, prefix_cache=True), Continuous(4, 64), Static(4)], ids=repr)
def test_a_request_that_breaks_the_network_breaks_alone(policy: Policy, tmp_path: Any) -> None:
    """A token's embedding is NaN: its request fails, its neighbours' replies are right, and so is every reply that
    comes to lie in the blocks it left."""
    torch.set_num_threads(1)
    model = load_decoder(load_checkpoint(tiny_checkpoint(tmp_path)), dtype=torch.float64)
    sound = [[10 + index, 20, 30, 40 + index, 60] * 3 for index in range(7)]
    sound = [prompt[: 5 + index] for index, prompt in enumerate(sound)]  # so that some are padded beside others
    want = [greedy_alone(model, prompt, 6) for prompt in sound]
    poison = next(token for token in range(70, VOCABULARY) if not any(token in reply for reply in want))
    model.embedding_VE[poison] = torch.nan
    engine = Engine(model, policy, blocks=20, block_tokens=BLOCK)
    greedy = SamplingSettings(max_tokens=6, temperature=0.0, seed=0)
    broken = engine.submit([50, poison, 51, 52, 53, 54, 55, 56, 57], greedy)
    handles = [engine.submit(prompt, greedy) for prompt in sound]
    engine.run_until_idle()

    assert (broken.status, broken.output) == (FAILED, [])
    assert [each.status for each in handles] == [COMPLETED] * 7
    assert [each.output for each in handles] == want
