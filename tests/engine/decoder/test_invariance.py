"""A sequence's logits depend on its own tokens alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.decoder.feeder import Feeder
from tests.engine.tiny import tiny_checkpoint

from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.load import load_decoder


@pytest.fixture(scope="module", params=["llama", "mistral"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    """A float64 decoder, without and with a window."""
    torch.set_num_threads(1)
    window: dict[str, Any] = {"sliding_window": 9} if request.param == "mistral" else {}
    folder = tiny_checkpoint(tmp_path_factory.mktemp("tiny"), request.param, **window)
    return load_decoder(load_checkpoint(folder), dtype=torch.float64)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 5))
def test_mates_chunks_and_blocks_do_not_matter(model: Decoder, seed: int, block_tokens: int, mates: int) -> None:
    """Whatever runs beside it, however it is cut and wherever it lies: logits within 1e-10, the same best tokens."""
    rng = random.Random(seed)
    texts = {str(i): rng.choices(range(320), k=rng.randint(1, 60)) for i in range(mates)}
    alone = {name: Feeder(model).feed({name: tokens})[name] for name, tokens in texts.items()}
    feeder = Feeder(model, 60 * 5, block_tokens, seed)
    waiting = dict(texts)
    while waiting:
        chosen = rng.sample(sorted(waiting), rng.randint(1, len(waiting)))
        new = {name: waiting[name][: rng.choice((1, 1, 2, 5, 30))] for name in chosen}
        for name, got in feeder.feed(new).items():
            end = feeder.lengths[name]
            want = alone[name][end - len(got) : end]

            torch.testing.assert_close(got, want, rtol=0, atol=1e-10)
            assert got.argmax(1).equal(want.argmax(1))
            waiting[name] = waiting[name][len(got) :]
        waiting = {name: tokens for name, tokens in waiting.items() if tokens}


def test_a_prefix_of_the_same_step_is_read(model: Decoder) -> None:
    """A sequence may share blocks that another writes in the same step (a prefix hit while it is computed)."""
    tokens = list(range(5, 25))
    want = Feeder(model).feed({"a": tokens})["a"]
    feeder = Feeder(model, block_tokens=4)
    feeder.tables["b"] = feeder.tables["a"] = [feeder.free.pop() for _ in range(2)]
    feeder.tables["b"] = list(feeder.tables["b"])
    feeder.lengths["b"] = 8
    got = feeder.feed({"b": tokens[8:], "a": tokens[:8]})

    torch.testing.assert_close(got["b"], want[8:], rtol=0, atol=1e-10)
