"""What one rank holds: tensor, pipeline and expert parallel, replicated heads, latent attention, padded tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.deployment.builders import BF16, LLAMA_2_7B, LLAMA_3_8B, Parallelism, deployment

from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.deployment.engine import engine_profile
from servewise.deployment.pool import rank_kv_bytes_per_token
from servewise.deployment.shard import pipeline_stages, stage_weight_bytes
from servewise.modelspec.load import load_model
from servewise.modelspec.spec import ModelSpec
from servewise.precision import FORMATS

GIB = 2**30


def rank_gib(model: ModelSpec, engine: str, **changes: object) -> float:
    """Weights on a rank of the only stage [GiB]."""
    asked = deployment(model, 80 * GIB, engine=engine, **changes)
    (stage,) = pipeline_stages(model.layer_count, 1)
    return stage_weight_bytes(asked, engine_profile(engine), stage) / GIB


@pytest.mark.parametrize(
    ("name", "engine", "tensor", "logged_gib"),
    [
        ("llama-3.1-8b", "vllm-0.8.5", 1, 14.9889),  # https://github.com/vllm-project/vllm/pull/17122
        ("llama-3-8b", "vllm-0.6.6", 1, 14.9595),  # https://github.com/vllm-project/vllm/issues/12330
        ("llama-3-8b", "vllm-0.6.5", 2, 7.48),  # https://github.com/vllm-project/vllm/pull/10511
        ("llama-2-7b", "vllm-0.7.3", 1, 12.55),  # gateway-api-inference-extension/pull/550
        ("gpt-oss-120b", "vllm-0.10.1", 1, 65.9651),  # https://github.com/vllm-project/vllm/issues/23278
        ("qwen2.5-7b", "vllm-0.9", 1, 14.2487),  # 7.62 B in bf16: 15,231,233,024 B of safetensors, and rotary tables
    ],
)
def test_weights_as_logged(name: str, engine: str, tensor: int, logged_gib: float) -> None:
    """Weights on a rank are what vLLM printed when it loaded them, within half a percent."""
    ours = rank_gib(load_model(name), engine, parallelism=Parallelism(tensor=tensor))

    assert ours == pytest.approx(logged_gib, rel=0.005)


def test_tensor_parallel_halves_matrices_only() -> None:
    """Norms are on every rank, so two ranks hold a little more than one."""
    one, two = (rank_gib(LLAMA_2_7B, "ideal", parallelism=Parallelism(tensor=count)) for count in (1, 2))
    norms = (2 * 32 + 1) * 4096 * 2 / GIB

    assert 2 * two - one == pytest.approx(norms)


def test_kv_heads_replicated() -> None:
    """Eight KV heads over 16 ranks: each holds one, as with eight ranks, and its projections are copied."""
    eight, sixteen = (deployment(LLAMA_3_8B, 80 * GIB, parallelism=Parallelism(tensor=count)) for count in (8, 16))
    projections = 32 * 4096 * 128 * 2 * 2 / GIB
    halves = rank_gib(LLAMA_3_8B, "ideal", parallelism=Parallelism(tensor=16))
    wholes = rank_gib(LLAMA_3_8B, "ideal", parallelism=Parallelism(tensor=8))

    assert rank_kv_bytes_per_token(eight, 1.0) == rank_kv_bytes_per_token(sixteen, 1.0) == 131_072 / 8
    assert 2 * halves - wholes == pytest.approx(projections + 65 * 4096 * 2 / GIB)


def test_latent_is_on_every_rank() -> None:
    """MLA's latent of 70,272 B (Kimi K2) is whole on each tensor rank; DCP ranks share out its tokens."""
    kimi = load_model("kimi-k2")
    asked = deployment(kimi, 80 * GIB, parallelism=Parallelism(tensor=8))
    shared = deployment(kimi, 80 * GIB, parallelism=Parallelism(tensor=8, decode_context=4))

    assert rank_kv_bytes_per_token(asked, 1.0) == 70_272
    assert rank_kv_bytes_per_token(shared, 1.0) == 70_272 / 4


def test_experts_spread_over_ranks() -> None:
    """Expert parallel over TP2 x DP4 leaves an eighth of the experts on a rank; attention stays split in two."""
    mixtral = load_model("mixtral-8x7b")
    experts = 32 * 8 * 3 * 4096 * 14336 * 2 / GIB
    spread = rank_gib(mixtral, "ideal", parallelism=Parallelism(tensor=2, data=4, expert=True))
    split = rank_gib(mixtral, "ideal", parallelism=Parallelism(tensor=2))

    assert split - spread == pytest.approx(experts / 2 - experts / 8)


def test_copies_of_experts_take_memory_on_each_rank() -> None:
    """8 experts and 8 copies over 8 ranks: each holds two, one more than without; none is copied without ranks."""
    mixtral = load_model("mixtral-8x7b")
    expert = 32 * 3 * 4096 * 14336 * 2 / GIB
    split = Parallelism(tensor=2, data=4, expert=True)
    copied = replace(split, redundant_experts=8)

    more = rank_gib(mixtral, "ideal", parallelism=copied) - rank_gib(mixtral, "ideal", parallelism=split)
    assert more == pytest.approx(expert)
    assert str(copied) == "TP2 DP4 EP EPLB+8"


def test_pipeline_stages_cover_all() -> None:
    """Stages hold every layer once; the weights of all stages are the model's, a tied table twice."""
    stages = list(pipeline_stages(61, 4))
    asked = deployment(LLAMA_2_7B, 80 * GIB, parallelism=Parallelism(pipeline=4))
    held = sum(stage_weight_bytes(asked, engine_profile("ideal"), each) for each in pipeline_stages(32, 4))

    assert [stage.layers for stage in stages] == [15, 15, 16, 15]
    assert held == pytest.approx(LLAMA_2_7B.parameters * 2)


def test_fullest_stage_decides() -> None:
    """With 61 layers in 4 stages the one of 16 layers holds the fewest tokens, and the pool is quoted for it."""
    odd = replace(LLAMA_2_7B, layers=(replace(LLAMA_2_7B.layers[0], count=61),))
    capacity = kv_capacity(deployment(odd, 24 * GIB, parallelism=Parallelism(pipeline=4)))

    assert isinstance(capacity, KvCapacity)
    assert capacity.kv_bytes_per_token == pytest.approx(16 * 2 * 4096 * 2)


def test_quantised_parts_keep_their_scales() -> None:
    """nvfp4 weights take 4.5 bits in the layers, while embedding and head stay in bf16."""
    matrices = 32 * (LLAMA_3_8B.layers[0].attention.parameters + LLAMA_3_8B.layers[0].feed_forward.parameters)
    plain = LLAMA_3_8B.parameters - matrices
    ours = rank_gib(LLAMA_3_8B, "ideal", weights=FORMATS["nvfp4"])

    assert ours == pytest.approx((matrices * 4.5 / 8 + plain * BF16.bits / 8) / GIB)


def test_vocabulary_padded_to_64() -> None:
    """vLLM pads a vocabulary of 32,001 to 32,064 rows in table and head."""
    odd = replace(LLAMA_2_7B, vocab_size=32001, embedding_parameters=32001 * 4096, head_parameters=32001 * 4096)
    more = rank_gib(odd, "vllm-0.9") - rank_gib(LLAMA_2_7B, "vllm-0.9")

    assert more * GIB == pytest.approx(2 * 64 * 4096 * 2)
