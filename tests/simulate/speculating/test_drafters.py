"""What drafting costs, by hand, and what heads weigh, as published."""

from __future__ import annotations

import pytest

from servewise.ask.deploying import deploy
from servewise.batching.batch import Batch, Chunk
from servewise.batching.sequence import Sequence
from servewise.simulate.shapes import shape_of
from servewise.simulate.speculating.drafters import DraftModel, Heads, HostTime, Ngram
from servewise.simulate.speculating.one_layer import EAGLE3_VOCABULARY, eagle, medusa_head, multi_token_prediction
from servewise.steptime.ideal import IdealRoofline, two_term
from servewise.steptime.shape import StepShape, add_chunk, add_verification


def draft() -> IdealRoofline:
    """1 ms of weights, 1 us a KV token, no arithmetic."""
    return two_term(weight_bytes=1e9, kv_bytes_per_token=1e6, flops_per_token=0, bandwidth=1e12, peak=1e18)


def step(decodes: int = 0, context: int = 0, drafted: int = 0, chunks: tuple[Chunk, ...] = ()) -> Batch:
    """A batch with what drafters look at."""
    return Batch(decodes, context, context, 0, chunks, decodes, decodes, 0, 1, True, (), (), 0, drafted)


def test_a_draft_model_runs_a_step_a_token() -> None:
    """Two sequences of 500 KV tokens each: 1 ms + 1 ms a step, five steps for five tokens."""
    model = DraftModel(draft())

    assert model.round_s(1, 2, 1000) == pytest.approx(2e-3)
    assert model.seconds(step(2, 1000, drafted=5)) == pytest.approx(10e-3)
    assert model.seconds(step(2, 1000)) == 0.0


def test_a_draft_model_keeps_up_with_the_prompts() -> None:
    """A chunk of 100 tokens after 400 is read with the first draft step, or in a pass of its own."""
    model = DraftModel(draft())
    chunks = (Chunk(Sequence(0, 900, 9), 400, 100, False),)

    assert model.seconds(step(2, 1000, drafted=3, chunks=chunks)) == pytest.approx(2.5e-3 + 2 * 2e-3)
    assert model.seconds(step(0, 0, chunks=chunks)) == pytest.approx(1.5e-3)
    assert model.seconds(step(2, 1000, chunks=chunks)) == pytest.approx(1.5e-3)


def test_a_lookup_takes_no_accelerator_time_and_heads_take_one_pass_each() -> None:
    """An n-gram costs nothing; three heads cost three times one head's weights, whatever the context."""
    assert Ngram().seconds(step(8, 10_000, drafted=4)) == 0.0
    assert Heads(draft()).seconds(step(8, 10_000, drafted=3)) == pytest.approx(3e-3)


def test_the_hosts_time_comes_on_top() -> None:
    """0.5 ms a pass and 0.1 ms a sequence: five passes for two sequences are 2.7 ms more, a lookup's one 0.7 ms."""
    host = HostTime(pass_s=0.5e-3, sequence_s=0.1e-3)

    assert DraftModel(draft(), host=host).seconds(step(2, 1000, drafted=5)) == pytest.approx(12.7e-3)
    assert Ngram(host=host).seconds(step(2, 1000, drafted=5)) == pytest.approx(0.7e-3)
    assert Ngram(host=host).seconds(step(2, 1000)) == 0.0


@pytest.mark.parametrize(
    ("model", "billions"), [("llama-3.1-8b", 0.25), ("llama-2-7b", 0.24), ("llama-2-13b", 0.37), ("llama-3-70b", 0.99)]
)
def test_eagle_heads_are_as_large_as_published(model: str, billions: float) -> None:
    """The table of weights in SafeAILab/EAGLE's README, to its two digits."""
    assert eagle(deploy(model, "h100-sxm", tp=4)).model.parameters / 1e9 == pytest.approx(billions, abs=0.005)


def test_deepseeks_prediction_layer_is_as_large_as_published() -> None:
    """DeepSeek-V3's README_WEIGHTS: 11.5 billion parameters of its own, 2.4 active with table and head of 0.9 each."""
    model = multi_token_prediction(deploy("deepseek-v3", "h200", tp=8)).model

    assert model.parameters / 1e9 == pytest.approx(11.5, rel=0.01)
    assert (model.active_parameters + 2 * model.hidden_size * model.vocab_size) / 1e9 == pytest.approx(2.4, rel=0.1)


def test_eagle3_reads_two_vectors_and_knows_fewer_tokens() -> None:
    """Against EAGLE's: q, k, v for one vector more, a third one projected, and an output table of 32,000."""
    where = deploy("llama-3.1-8b", "h100-sxm")
    one, three = eagle(where).model, eagle(where, draft_vocabulary=EAGLE3_VOCABULARY).model
    hidden = 4096
    read = hidden * (32 + 8 + 8) * 128

    assert three.parameters - one.parameters == read + hidden * hidden + 32_000 * hidden
    assert three.vocab_size == 32_000


def test_a_medusa_head_is_a_block_and_a_table() -> None:
    """hidden^2 + hidden x vocabulary, and the final norm; no KV."""
    where = medusa_head(deploy("llama-2-7b", "a100-80gb"))

    assert where.model.parameters == 4096**2 + 4096 * 32_000 + 4096
    assert not any(each.kv_values_per_token for _, each in where.model.attentions())


@pytest.mark.parametrize("window", [None, 40, 5000])
def test_a_verification_is_a_prompt_chunk_with_all_its_logits(window: int | None) -> None:
    """Three sequences of 700 tokens verify 5 each: the chunk of 5 after 695, three times, with 15 rows of logits.

    Held for a window on either side of the contexts.
    """
    context, windowed = 3 * 700, 3 * min(700, window or 700)
    found = add_verification(StepShape(), 3, 5, context, windowed)
    chunk = add_chunk(StepShape(), 695, 5, window, times=3)

    assert found == chunk._replace(logit_rows=15)


def test_the_shape_of_a_drafted_batch_beside_a_prompt() -> None:
    """Two rows of K = 3 ending at 104 and 204 tokens, beside a prompt chunk of 50 that ends."""
    chunks = (Chunk(Sequence(0, 50, 9), 0, 50, True),)
    found = shape_of(step(2, 308, drafted=3, chunks=chunks), None)
    rows = add_chunk(add_chunk(StepShape(), 100, 4), 200, 4)

    assert found == add_chunk(rows, 0, 50)._replace(logit_rows=9)


def test_the_shape_of_rows_that_draft_beside_rows_that_do_not() -> None:
    """Four rows of 100 tokens in the cache, one of which verifies 3 drafts: one chunk of 4, three plain rows of 101."""
    batch = step(4, 3 * 101 + 104, drafted=3)._replace(drafting=1)
    plain = StepShape(3, 3 * 101, 3 * 101, logit_rows=3)

    assert shape_of(batch, None)._replace(decode_windowed_tokens=3 * 101) == add_chunk(plain, 100, 4)._replace(
        logit_rows=7
    )
