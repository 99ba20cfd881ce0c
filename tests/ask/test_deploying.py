"""Options become one deployment, or one clear refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servewise.ask.deploying import conditions_of, deploy
from servewise.ask.names import accelerator_named, model_named, with_kv_heads
from servewise.errors import InputError, UnknownName
from servewise.modelspec.kv import kv_bytes_per_token
from servewise.modelspec.weights import weight_bytes
from servewise.precision import FORMATS

BF16 = FORMATS["bf16"]


def test_three_numbers_are_an_accelerator() -> None:
    """Peak, bandwidth and memory alone make a device, whose peak holds for every format."""
    found = accelerator_named(None, peak_flops=400e12, bandwidth=3e12, memory=96e9)

    assert (found.memory_bytes, found.bandwidth_bytes_per_s) == (96e9, 3e12)
    assert {found.peak_flops(format_.compute) for format_ in FORMATS.values()} == {400e12}


def test_missing_numbers_are_named() -> None:
    """Without a name, all three numbers are needed, and the line says which are missing."""
    with pytest.raises(InputError, match=r"no accelerator is given; .*\(memory missing\)"):
        accelerator_named(None, peak_flops=1e12, bandwidth=1e12)


def test_own_numbers_stand_over_the_catalogue() -> None:
    """A bandwidth of one's own replaces the catalogue's, the rest stays, and the conditions say so."""
    deployment = deploy("llama-2-13b", "a100-80gb", bandwidth=1e12)

    assert deployment.accelerator.bandwidth_bytes_per_s == 1e12
    assert deployment.accelerator.memory_bytes == accelerator_named("a100-80gb").memory_bytes
    assert "own bandwidth" in conditions_of(deployment, load="x", lengths="y").hardware


def test_an_eighth_of_the_kv_heads_is_an_eighth_of_the_cache() -> None:
    """The study's what-if: 5 of 40 KV heads take an eighth of the bytes, with the weights left as they are."""
    model = model_named("llama-2-13b")
    found = with_kv_heads(model, 5)

    assert kv_bytes_per_token(found, BF16) == kv_bytes_per_token(model, BF16) / 8
    assert weight_bytes(found) == weight_bytes(model)


@pytest.mark.parametrize(("model", "heads"), [("llama-2-13b", 3), ("llama-2-13b", 0), ("deepseek-v2-lite", 4)])
def test_impossible_kv_heads_are_refused(model: str, heads: int) -> None:
    """Heads that do not divide the query heads, none, and any at all on a latent cache make no sense."""
    with pytest.raises(InputError, match="kv_heads"):
        with_kv_heads(model_named(model), heads)


@pytest.mark.parametrize(
    ("count", "tp", "pp", "split"),
    [(None, None, None, "TP1"), (4, None, None, "TP4"), (4, 2, None, "TP2 DP2"), (8, None, 2, "TP4 PP2")],
)
def test_count_splits_by_tensor_unless_told(count: int | None, tp: int | None, pp: int | None, split: str) -> None:
    """Accelerators left over by tp x pp are replicas; without tp all of a stage go to tensor parallelism."""
    assert str(deploy("llama-2-13b", "a100-80gb", count=count, tp=tp, pp=pp).parallelism) == split


def test_a_remainder_is_refused() -> None:
    """Five accelerators are no whole number of pairs."""
    with pytest.raises(InputError, match="count: 5 accelerators do not divide"):
        deploy("llama-2-13b", "a100-80gb", count=5, tp=2)


def test_dcp_divides_tp() -> None:
    """Decode context parallel ranks are tensor ranks."""
    with pytest.raises(InputError, match="dcp"):
        deploy("llama-2-13b", "a100-80gb", tp=4, dcp=3)


def test_an_fp32_checkpoint_is_loaded_in_half() -> None:
    """Engines serve fp32 checkpoints in 16 bits: half of the checkpoint's bytes, 16-bit cache and arithmetic."""
    model = replace(model_named("olmo-1b"), dtype=FORMATS["fp32"], weights=FORMATS["fp32"], checkpoint_bytes=None)
    deployment = deploy(model, "a100-80gb")

    assert weight_bytes(model, deployment.weights) == 2 * model.parameters
    assert deployment.kv.bits == deployment.activations.bits == 16


def test_an_engine_is_known_with_its_version() -> None:
    """vllm-0.10 names an era; a typo gets the nearest names."""
    assert deploy("llama-2-13b", "a100-80gb", engine="vllm-0.10").engine == "vllm-0.10"
    with pytest.raises(UnknownName, match="vllm"):
        deploy("llama-2-13b", "a100-80gb", engine="vlm")
