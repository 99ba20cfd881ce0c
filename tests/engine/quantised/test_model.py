"""A whole decoder with fewer bits: emulations exact, kernels like them, caches like decoding token by token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tests.engine.decoder.feeder import Feeder, far
from tests.engine.tiny import VOCABULARY, tiny_checkpoint
from torch import Tensor

from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.linear import DenseLinear
from servewise.engine.decoder.load import load_decoder
from servewise.engine.quantised.gptq import Gptq, output_error
from servewise.engine.quantised.grid import Grid, round_to_grid
from servewise.engine.quantised.model import (
    QuantisedKv,
    linear_maker,
    moments_of,
    products_of,
    quantise,
)
from servewise.engine.quantised.products import Int4Linear, Int8Linear
from servewise.engine.quantised.scheme import KvScheme, Scheme
from servewise.engine.step import Model
from servewise.errors import InputError

TOKENS = [int(each) for each in torch.randint(0, VOCABULARY, (40,), generator=torch.Generator().manual_seed(0))]
GRID = Grid(bits=4, group=32, symmetric=False)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A tiny Llama whose widths suit the kernels."""
    folder: Path = tmp_path_factory.mktemp("tiny")
    return load_checkpoint(tiny_checkpoint(folder, hidden=128, intermediate=256, heads=4, kv_heads=2) or folder)


@pytest.fixture(scope="module")
def decoder(checkpoint: Checkpoint) -> Decoder:
    """It in float64."""
    return load_decoder(checkpoint, dtype=torch.float64)


def logits(model: Model, tokens: Sequence[int] = TOKENS) -> Tensor:
    """Of every token, in one step."""
    return Feeder(model).feed({"a": tokens})["a"]


def weight_of(product: object) -> Tensor:
    """The dense matrix of a product."""
    assert isinstance(product, DenseLinear)
    return product.weight_OI


def test_an_emulation_has_each_matrix_on_the_grid_and_leaves_the_tables(decoder: Decoder) -> None:
    """Every matrix of the layers is the grid's; embedding and output table are the checkpoint's own."""
    made = quantise(decoder, Scheme(weights=GRID))
    for (name, old), (_, new) in zip(products_of(decoder), products_of(made), strict=True):
        expected = weight_of(old) if name == "lm_head" else round_to_grid(weight_of(old), GRID)
        assert torch.equal(weight_of(new), expected), name
    assert made.embedding_VE is decoder.embedding_VE


def test_tables_are_quantised_by_row_when_asked(decoder: Decoder) -> None:
    """With ``tables`` the embedding and the output table are on the grid too."""
    made = quantise(decoder, Scheme(weights=GRID, tables=True))
    assert torch.equal(made.embedding_VE, round_to_grid(decoder.embedding_VE, GRID))
    assert torch.equal(weight_of(made.head), round_to_grid(weight_of(decoder.head), GRID))


def test_quantising_again_on_the_same_grid_changes_nothing(decoder: Decoder) -> None:
    """A model whose weights lie on a grid cannot lose on it: the logits stay the same bit by bit."""
    once = quantise(decoder, Scheme(weights=GRID))
    twice = quantise(once, Scheme(weights=GRID))
    torch.testing.assert_close(logits(twice), logits(once), rtol=0, atol=1e-9)
    assert not torch.equal(logits(once), logits(decoder))


def test_loading_with_the_maker_is_quantising_what_was_loaded(checkpoint: Checkpoint, decoder: Decoder) -> None:
    """``load_decoder(linear=linear_maker(scheme))`` gives the model of ``quantise``."""
    scheme = Scheme(weights=GRID)
    loaded = load_decoder(checkpoint, dtype=torch.float64, linear=linear_maker(scheme))
    assert torch.equal(logits(loaded), logits(quantise(decoder, scheme)))


def test_more_bits_are_nearer(decoder: Decoder) -> None:
    """The distance of the logits falls with every bit more; steps 16 times finer err 6 to 40 times less."""
    exact = logits(decoder)
    distances = [far(logits(quantise(decoder, Scheme(weights=Grid(bits=b, group=32)))), exact) for b in (2, 3, 4, 6, 8)]
    assert distances == sorted(distances, reverse=True)
    assert distances[2] / 40 < distances[4] < distances[2] / 6


def test_moments_are_those_of_the_inputs(decoder: Decoder) -> None:
    """E[x x^T] of the first product is that of the normed embeddings of the text."""
    moments = moments_of(decoder, logits)
    x = decoder.embedding_VE[torch.tensor(TOKENS)]
    x = x / (x.square().mean(1, keepdim=True) + decoder.config.norm_epsilon).sqrt() * decoder.layers[0].attention_norm
    torch.testing.assert_close(moments.of("model.layers.0.self_attn.qkv_proj"), x.T @ x / len(x))
    assert "lm_head" not in moments


def test_gptq_errs_less_in_every_product_of_the_model(decoder: Decoder) -> None:
    """On the calibration text each product's output error is at most plain rounding's, and in all it is smaller."""
    moments = moments_of(decoder, logits)
    grid = Grid(bits=3, group=32, symmetric=False)
    plain, ours = (
        quantise(decoder, Scheme(weights=grid)),
        quantise(decoder, Scheme(weights=grid, method=Gptq()), moments),
    )
    totals = [0.0, 0.0]
    for (name, old), (_, rtn), (_, gptq) in zip(
        products_of(decoder), products_of(plain), products_of(ours), strict=True
    ):
        if name != "lm_head":
            errors = [
                float(output_error(weight_of(each) - weight_of(old), moments.of(name)).sum()) for each in (rtn, gptq)
            ]
            assert errors[1] <= errors[0] * (1 + 1e-9), name
            totals = [total + error for total, error in zip(totals, errors, strict=True)]
    assert totals[1] < 0.7 * totals[0]


def test_gptq_without_a_calibration_is_refused(decoder: Decoder) -> None:
    """The error names the product and what to run."""
    with pytest.raises(InputError, match="second moments"):
        quantise(decoder, Scheme(weights=GRID, method=Gptq()))


@pytest.mark.parametrize(
    ("grid", "kind"), [(Grid(bits=8, scales="bf16"), Int8Linear), (Grid(bits=4, group=64, scales="bf16"), Int4Linear)]
)
def test_a_packed_model_is_its_emulation(checkpoint: Checkpoint, grid: Grid, kind: type) -> None:
    """In bf16 the packed model's logits differ from the emulated one's by bf16's rounding, decoding and in prompts."""
    decoder = load_decoder(checkpoint, dtype=torch.bfloat16)
    packed, emulated = (quantise(decoder, Scheme(weights=grid, packed=each)) for each in (True, False))
    assert all(isinstance(product, kind) for name, product in products_of(packed) if name != "lm_head")
    assert far(logits(packed), logits(emulated)) < 0.03
    a, b = Feeder(packed), Feeder(emulated)
    for token in TOKENS[:5]:
        assert far(a.feed({"a": [token]})["a"], b.feed({"a": [token]})["a"]) < 0.03


def test_a_packed_model_is_not_quantised_again(checkpoint: Checkpoint) -> None:
    """What keeps only packed weights cannot be quantised: one clear line."""
    packed = quantise(
        load_decoder(checkpoint, dtype=torch.bfloat16), Scheme(weights=Grid(bits=8, scales="bf16"), packed=True)
    )
    with pytest.raises(InputError, match="no plain matrix"):
        quantise(packed, Scheme(weights=GRID))


def test_activations_of_8_bits_change_little(decoder: Decoder) -> None:
    """Rounding what enters each product to 8 bits moves the logits about as far as rounding its weights to 8 bits."""
    exact = logits(decoder)
    inputs, weights = (
        logits(quantise(decoder, each)) for each in (Scheme(activations=True), Scheme(weights=Grid(bits=8)))
    )
    assert far(weights, exact) / 4 < far(inputs, exact) < 4 * far(weights, exact)


@pytest.mark.parametrize("by", ["channel", "token"])
@pytest.mark.parametrize("bits", [8, 3])
def test_steps_of_a_block_equal_decoding_token_by_token(decoder: Decoder, by: str, bits: int) -> None:
    """With a quantised cache, block-sized steps give the logits of one-token steps: what the probe relies on."""
    model = QuantisedKv(decoder, KvScheme(bits=bits, keys=by))
    blocks, singles = Feeder(model, block_tokens=4), Feeder(model, block_tokens=4)
    by_block = torch.cat([blocks.feed({"a": TOKENS[i : i + 4]})["a"] for i in range(0, 20, 4)])
    by_token = torch.cat([singles.feed({"a": [token]})["a"] for token in TOKENS[:20]])
    torch.testing.assert_close(by_block, by_token, rtol=0, atol=1e-9)


def test_a_cache_of_8_bits_is_near_and_of_2_bits_is_not(decoder: Decoder) -> None:
    """Steps 85 times finer (255 against 3 of them) move the logits at least 20 times less."""
    exact = logits(decoder)
    near, far_off = (far(logits(QuantisedKv(decoder, KvScheme(bits=b))), exact) for b in (8, 2))
    assert near < far_off / 20


def test_other_sequences_do_not_change_a_quantised_reply(decoder: Decoder) -> None:
    """A sequence decoded beside others has the logits that it has alone."""
    model = QuantisedKv(decoder, KvScheme(bits=4))
    alone, together = Feeder(model), Feeder(model, seed=1)
    alone.feed({"a": TOKENS[:6]})
    together.feed({"b": TOKENS[3:14], "a": TOKENS[:6], "c": TOKENS[9:12]})
    for token in TOKENS[6:16]:
        ours = together.feed({"b": [token], "a": [token], "c": [token]})["a"]
        torch.testing.assert_close(ours, alone.feed({"a": [token]})["a"], rtol=0, atol=1e-9)
