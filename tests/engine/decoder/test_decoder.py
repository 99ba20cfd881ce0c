"""The decoder against transformers, family by family, however the tokens come."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tests.engine.decoder.feeder import Feeder, far, oracle, oracle_logits
from tests.engine.tiny import tiny_checkpoint

from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.decoder.decoder import Decoder, rows_not_finite
from servewise.engine.decoder.load import load_decoder
from servewise.errors import InputError

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"family": "llama"},
    "llama-3": {"family": "llama", "rope_scaling": LLAMA3, "kv_heads": 1, "tied": True},
    "llama-biased": {"family": "llama", "attention_bias": True, "mlp_bias": True, "kv_heads": 4},
    "mistral": {"family": "mistral", "sliding_window": None, "head_dim": 32},
    "mistral-window": {"family": "mistral", "sliding_window": 7},
    "qwen2": {"family": "qwen2", "tied": True},
    "qwen3": {"family": "qwen3", "head_dim": 32},
}
BARS = {torch.float64: 1e-10, torch.float32: 1e-5}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module", params=list(FAMILIES))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of each family."""
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), dtype=torch.float64, **FAMILIES[request.param])


def loaded(folder: Path, dtype: torch.dtype) -> tuple[Checkpoint, Decoder, Any]:
    """The checkpoint, the decoder and the oracle."""
    checkpoint = load_checkpoint(folder)
    exact = checkpoint.config.rope if dtype == torch.float64 else None
    return checkpoint, load_decoder(checkpoint, dtype=dtype), oracle(folder, dtype, exact)


def prompt(length: int, seed: int = 0) -> list[int]:
    """Random tokens."""
    return random.Random(seed).choices(range(320), k=length)


@pytest.mark.parametrize("dtype", BARS, ids=str)
def test_logits_agree_with_transformers(folder: Path, dtype: torch.dtype) -> None:
    """A prompt at once, in chunks, and token by token give transformers' logits at every position."""
    _, model, theirs = loaded(folder, dtype)
    tokens = prompt(41)
    want = oracle_logits(theirs, tokens)
    for chunks in ([41], [13, 1, 20, 7], [1] * 41):
        feeder, parts, start = Feeder(model), [], 0
        for chunk in chunks:
            parts.append(feeder.feed({"a": tokens[start : start + chunk]})["a"])
            start += chunk
        got = torch.cat(parts)

        assert got.dtype == dtype
        assert far(got, want) < BARS[dtype]


def test_mixed_batches_agree_with_transformers(folder: Path) -> None:
    """Each sequence of a changing batch (decodes, chunks, drafts, unequal contexts) has transformers' logits."""
    _, model, theirs = loaded(folder, torch.float64)
    texts = {name: prompt(30 + 11 * i, seed=i) for i, name in enumerate("abcde")}
    want = {name: oracle_logits(theirs, tokens) for name, tokens in texts.items()}
    feeder, rng = Feeder(model, blocks=128), random.Random(1)
    while any(feeder.lengths.get(name, 0) < len(tokens) for name, tokens in texts.items()):
        left = {name: tokens[feeder.lengths.get(name, 0) :] for name, tokens in texts.items()}
        new = {name: tokens[: rng.choice((1, 1, 1, 3, 17))] for name, tokens in left.items() if tokens}
        starts = {name: feeder.lengths.get(name, 0) for name in new}
        for name, got in feeder.feed(new).items():
            assert far(got, want[name][starts[name] : starts[name] + len(got)]) < 1e-10


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_stays_near(folder: Path, dtype: torch.dtype) -> None:
    """In 16 bits the decoder is no further from float64 than twice what transformers is."""
    checkpoint, model, theirs = loaded(folder, dtype)
    tokens = prompt(60)
    exact = Feeder(load_decoder(checkpoint, dtype=torch.float64)).feed({"a": tokens})["a"]
    got = Feeder(model).feed({"a": tokens})["a"]
    error = (got - exact).pow(2).mean().sqrt()
    their_error = (oracle_logits(theirs, tokens) - exact).pow(2).mean().sqrt()

    assert got.dtype == torch.float32
    assert error < 2 * their_error


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A plain one."""
    return load_checkpoint(tiny_checkpoint(tmp_path_factory.mktemp("llama")))


def test_only_wanted_rows(llama: Checkpoint) -> None:
    """Logits come for the wanted rows alone, in their order."""
    model = load_decoder(llama, dtype=torch.float64)
    tokens = prompt(9)
    every = Feeder(model).feed({"a": tokens})["a"]
    feeder = Feeder(model)
    step = feeder.step_of({"a": tokens})
    rows = torch.tensor([8, 2])
    some = model.step(replace(step, rows_R=rows), feeder.cache)

    torch.testing.assert_close(some, every[rows])


def test_early_exit_is_the_shorter_model(tmp_path: Path) -> None:
    """A model cut after two of three layers is transformers' model with its layer list cut there."""
    checkpoint = load_checkpoint(tiny_checkpoint(tmp_path, layers=3))
    theirs = oracle(tmp_path, torch.float32)
    theirs.model.layers = theirs.model.layers[:2]
    tokens = prompt(12)
    got = Feeder(load_decoder(checkpoint).first_layers(2)).feed({"a": tokens})["a"]

    assert far(got, oracle_logits(theirs, tokens)) < 1e-5
    with pytest.raises(InputError, match="4 layers of a model that has 3"):
        load_decoder(checkpoint).first_layers(4)


def test_over_the_context_is_refused(llama: Checkpoint) -> None:
    """A sequence longer than the context raises one line that says by what."""
    with pytest.raises(InputError, match="513 tokens, where the context is 512"):
        Feeder(load_decoder(llama), blocks=200).feed({"a": prompt(513)})


def test_unusable_dtypes_and_devices_are_refused(llama: Checkpoint) -> None:
    """Integers and devices that are not there are one clear line."""
    with pytest.raises(InputError, match="cannot compute in torch"):
        load_decoder(llama, dtype=torch.int8)
    with pytest.raises(InputError, match="no device"):
        load_decoder(llama, device="xpu")
    with pytest.raises(InputError, match="no device"):
        load_decoder(llama, device="nonsense")


def test_not_a_number_stays_with_its_sequence(llama: Checkpoint) -> None:
    """A sequence with NaN logits is named; its batch mates' logits do not change; its cleared blocks serve others."""
    broken = llama.weight("model.embed_tokens.weight").clone()
    broken[7] = float("nan")
    model, clean = load_decoder(llama, dtype=torch.float64), load_decoder(llama, dtype=torch.float64)
    model.embedding_VE = broken.double()
    feeder, alone = Feeder(model), Feeder(clean)
    good = [token for token in prompt(20) if token != 7]
    got = feeder.feed({"good": good, "bad": [1, 7, 3]})
    want = alone.feed({"good": good})["good"]

    torch.testing.assert_close(got["good"], want)
    assert rows_not_finite(torch.cat((got["good"][-1:], got["bad"][-1:]))) == [1]
    decoded = feeder.feed({"bad": [5], "good": [5]})["good"]
    torch.testing.assert_close(decoded, alone.feed({"good": [5]})["good"])
    blocks = tuple(feeder.tables.pop("bad"))
    feeder.cache.clear(blocks)  # type: ignore[attr-defined]
    feeder.free += blocks
    torch.testing.assert_close(feeder.feed({"next": good[:3]})["next"], want[:3])
