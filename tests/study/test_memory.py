"""KV bytes and largest batches of the study, each checked by hand from 2 x layers x hidden x bytes."""

from __future__ import annotations

import pytest

from servewise.modelspec.kv import kv_bytes_per_token
from servewise.modelspec.weights import weight_bytes
from servewise.precision import FORMATS
from servewise.study import inputs
from servewise.study.memory import kv_bytes_table, largest_batch_table, variants


def test_a_token_takes_what_the_studys_formula_says() -> None:
    """Llama 2 13B keeps 2 x 40 layers x 5,120 x 2 bytes = 819,200 bytes a token, true and rounded model alike."""
    for model in (inputs.llama_2_13b(), inputs.model()):
        assert kv_bytes_per_token(model, FORMATS["bf16"]) == 2 * 40 * 5120 * 2 == 819_200


def test_inputs_are_the_studys_round_ones() -> None:
    """26e9 bytes of weights (6.5e9 at 4 bits), 80e9 bytes of memory, 2e12 bytes/s and 312e12 FLOP/s."""
    assert weight_bytes(inputs.model()) == 26e9
    assert weight_bytes(inputs.model(), FORMATS["int4"]) == 6.5e9
    device = inputs.accelerator()
    assert (device.memory_bytes, device.bandwidth_bytes_per_s, device.peak_flops("bf16")) == (80e9, 2e12, 312e12)


@pytest.mark.parametrize(
    ("context", "batch", "gigabytes"), [(512, 1, 0.42), (2048, 1, 1.68), (8192, 1, 6.71), (2048, 32, 53.69)]
)
def test_kv_gigabytes(context: int, batch: int, gigabytes: float) -> None:
    """The KV cache takes the study's gigabytes, and batch x context x 819,200 bytes by hand."""
    (row,) = kv_bytes_table().select("KV cache", context_tokens=context, batch=batch)
    assert round(row.ours, 2) == gigabytes == round(batch * context * 819_200 / 1e9, 2)
    assert row.agrees


LARGEST = {
    (512, "16-bit cache"): 128,
    (512, "8-bit cache"): 257,
    (512, "4-bit weights"): 175,
    (512, "1/8 as many KV heads"): 1029,
    (2048, "16-bit cache"): 32,
    (2048, "8-bit cache"): 64,
    (2048, "4-bit weights"): 43,
    (2048, "1/8 as many KV heads"): 257,
    (8192, "16-bit cache"): 8,
    (8192, "8-bit cache"): 16,
    (8192, "4-bit weights"): 10,
    (8192, "1/8 as many KV heads"): 64,
}


@pytest.mark.parametrize(("context", "variant"), LARGEST)
def test_largest_batch(context: int, variant: str) -> None:
    """The largest batch is the study's, and floor((80e9 - weights) / (context x bytes a token)) by hand."""
    (row,) = largest_batch_table().select("largest batch", context_tokens=context, variant=variant)
    weights = 6.5e9 if variant == "4-bit weights" else 26e9
    per_token = 819_200 / {"8-bit cache": 2, "1/8 as many KV heads": 8}.get(variant, 1)
    assert row.ours == LARGEST[context, variant] == int((80e9 - weights) // (context * per_token))
    assert row.agrees


def test_the_four_variants_are_the_studys() -> None:
    """Each variant changes one thing: bits of the cache, bits of the weights, or KV heads."""
    plain, kv, weights, heads = variants().values()
    assert kv.kv.bits == 8
    assert kv.weights == plain.weights
    assert weights.weights is not None
    assert weights.weights.bits == 4
    assert weights.kv == plain.kv
    assert heads.model.layers[0].attention.kv_heads * 8 == plain.model.layers[0].attention.kv_heads


def test_cache_at_batch_32_is_twice_the_weights() -> None:
    """The study's claim that the cache at batch 32 is twice the 26 GB of weights holds."""
    assert all(row.agrees for row in kv_bytes_table().rows)
