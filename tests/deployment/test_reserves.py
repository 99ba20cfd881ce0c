"""What engines keep beside weights and cache, against what they logged about themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.deployment.builders import Limits, Parallelism, deployment

from servewise.deployment.engine import engine_profile, engine_profiles
from servewise.deployment.reserves import (
    activation_bytes,
    collective_bytes,
    graph_bytes,
    index_workspace_bytes,
    largest_step,
    runtime_bytes,
)
from servewise.deployment.shard import padded_expert, pipeline_stages
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.units import GIB


def peak_gib(model: str, engine: str, limits: Limits, tensor: int = 1) -> float:
    """Activation peak on the last stage [GiB]."""
    asked = deployment(
        load_model(model), 80 * GIB, engine=engine, limits=limits, parallelism=Parallelism(tensor=tensor)
    )
    *_, last = pipeline_stages(asked.model.layer_count, 1)
    return activation_bytes(asked, engine_profile(engine), last) / GIB


@pytest.mark.parametrize(
    ("model", "engine", "limits", "tensor", "logged_gib"),
    [
        # whole prompts of 20,000 and 29,000 tokens: https://github.com/vllm-project/vllm/issues/10517
        ("llama-3.1-8b", "vllm-0.6.4", Limits(max_context_tokens=20_000), 1, 2.07),
        ("llama-3.1-8b", "vllm-0.6.4", Limits(max_context_tokens=29_000), 1, 2.99),
        # sampling for 256 rows: vllm issues/12529 and 13061 (1.19 GiB more on the driver than the other's 0.19)
        ("qwen2.5-1.5b", "vllm-0.7.3", Limits(max_context_tokens=2_000), 1, 1.39),
        ("qwen2.5-14b", "vllm-0.7.2", Limits(max_context_tokens=131_072), 2, 1.38),
        # sampling for 2,048 rows is the one setting with which https://github.com/vllm-project/vllm/issues/12330 agrees
        ("llama-3-8b", "vllm-0.6.6", Limits(max_context_tokens=8_192, max_sequences=2_048), 1, 9.37),
        # V1: Qwen3-8B-FP8 on an RTX 4090 (2025-09) and Qwen3.8-27B's shape on an RTX 5090 (vllm issues/52872)
        ("qwen3-8b", "vllm-0.11", Limits(max_batched_tokens=2_048, max_sequences=256), 1, 1.40),
        ("qwen3.6-27b", "vllm-0.27", Limits(max_batched_tokens=2_048, max_sequences=256), 1, 2.21),
    ],
)
def test_activation_peak(model: str, engine: str, limits: Limits, tensor: int, logged_gib: float) -> None:
    """The profile run's peak is within 3% of what vLLM logged."""
    assert peak_gib(model, engine, limits, tensor) == pytest.approx(logged_gib, rel=0.03)


def test_peak_of_gpt_oss_left_nothing() -> None:
    """1,024 rows of 201,088 logits at 38 bytes are the 7.3 GiB that kept gpt-oss-120b off an H100 (issue 23278)."""
    assert peak_gib("gpt-oss-120b", "vllm-0.10.1", Limits(max_batched_tokens=8192, max_sequences=1024)) == (
        pytest.approx(0.9 * 79.19 - 65.97 + 2.14 - 0.07, rel=0.02)
    )


def test_only_the_last_stage_samples() -> None:
    """DeepSeek-R1 at TP8 PP2: the first stage's peak is far below sampling's 1.2 GiB (0.24 GiB in vllm issue 13074)."""
    asked = deployment(
        load_model("deepseek-r1"), 140 * GIB, engine="vllm-0.7.2", parallelism=Parallelism(tensor=8, pipeline=2)
    )
    first, last = pipeline_stages(61, 2)
    profile = engine_profile(asked.engine)

    assert activation_bytes(asked, profile, first) < 0.4 * GIB < GIB < activation_bytes(asked, profile, last)


def test_kept_reductions_of_025() -> None:
    """vLLM 0.2.5 keeps two reduced tensors a layer: 80 x 2 x 4,096 x 8,192 x 2 bytes of Llama 2 70B, 0.2.6 does not."""
    (stage,) = pipeline_stages(80, 1)
    peaks = [
        activation_bytes(
            deployment(load_model("llama-2-70b"), 80 * GIB, engine=engine, parallelism=Parallelism(tensor=4)),
            engine_profile(engine),
            stage,
        )
        for engine in ("vllm-0.2.5", "vllm-0.2.6")
    ]

    assert peaks[0] - peaks[1] == 80 * 2 * 4096 * 8192 * 2


def test_index_workspace() -> None:
    """DeepSeek V3.2's indexer buffer is 40 x 163,840 x 132 = 865,075,200 bytes, as vLLM's own comment has it."""
    asked = deployment(load_model("deepseek-v3.2"), 140 * GIB, engine="vllm-0.11")

    assert index_workspace_bytes(asked, engine_profile(asked.engine)) == 865_075_200


@pytest.mark.parametrize(("sequences", "tensor", "logged_gib"), [(256, 1, 0.71), (1024, 2, 5.0)])
def test_graph_estimates(sequences: int, tensor: int, logged_gib: float) -> None:
    """86 graphs on one GPU were estimated at 0.64 and 0.78 GiB, 102 on several at 4.99 and 5.02."""
    asked = deployment(
        load_model("llama-3-8b"),
        80 * GIB,
        engine="vllm",
        limits=Limits(max_sequences=sequences, max_batched_tokens=8192),
        parallelism=Parallelism(tensor=tensor),
    )

    assert graph_bytes(asked, engine_profile("vllm")) / GIB == pytest.approx(logged_gib, rel=0.1)
    assert graph_bytes(replace(asked, limits=replace(asked.limits, cuda_graphs=False)), engine_profile("vllm")) == 0


def test_switched_links_take_more() -> None:
    """NVLink through a switch takes over a GiB of buffers, PCIe a fraction, one device none."""
    profile = engine_profile("vllm")
    two = deployment(load_model("llama-3-8b"), 80 * GIB, parallelism=Parallelism(tensor=2))
    h100, l40s = (replace(two, accelerator=load_accelerator(name)) for name in ("h100-sxm", "l40s"))

    assert collective_bytes(replace(h100, parallelism=Parallelism()), profile) == 0
    assert collective_bytes(l40s, profile) < 0.3 * GIB < GIB < collective_bytes(h100, profile)


def test_shared_memory_of_the_host() -> None:
    """On a GB10 the host's own growth is charged: 5.72 GiB outside of the framework in a public log of two of them."""
    gb10 = replace(deployment(load_model("llama-3-8b"), 80 * GIB), accelerator=load_accelerator("gb10"))

    assert runtime_bytes(gb10, engine_profile("vllm")) == pytest.approx(5.72 * GIB, rel=0.01)


@pytest.mark.parametrize(
    ("accelerator", "engine", "tokens", "sequences"),
    [
        ("h100-sxm", "vllm-0.11", 8192, 1024),
        ("a100-80gb", "vllm-0.11", 2048, 256),  # PR 17885: large steps slow the A100
        ("a100-80gb", "vllm-0.8.3", 8192, 1024),
        ("rtx-4090", "vllm-0.11", 2048, 256),
        ("h100-sxm", "sglang-0.5.5", 8192, 256),
        ("b200", "sglang-0.5.5", 16384, 512),
    ],
)
def test_default_steps(accelerator: str, engine: str, tokens: int, sequences: int) -> None:
    """The largest step is the engine's default for that device (vllm/engine/arg_utils.py, sglang server_args.py)."""
    asked = replace(
        deployment(load_model("llama-3-8b"), 80 * GIB, engine=engine), accelerator=load_accelerator(accelerator)
    )
    step = largest_step(asked, engine_profile(engine))

    assert (step.tokens, step.sequences) == (tokens, sequences)


def test_padding_without_biases() -> None:
    """An expert of whole blocks of 32 is padded without biases; parts are padded each for itself."""
    assert padded_expert(2048, 3 * 2048 * 768, 1, (256, 128)) == 3 * 2048 * 768
    assert padded_expert(2048, 3 * 2048 * 768, 8, (256, 128)) == 3 * 2048 * 128


def test_profiles_tell_their_source() -> None:
    """Every profile names where its rules come from, and which terms it charges, none of them twice."""
    for profile in engine_profiles().values():
        assert profile.source
        assert "weights" in profile.inside_share + profile.before_share
        assert not set(profile.inside_share) & set(profile.before_share)
