"""Capacity as engines leave it: known logs, breakdowns, refusals, windows."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from tests.deployment.builders import BF16, LLAMA_2_7B, LLAMA_3_8B, Limits, Parallelism, deployment

from servewise.deployment.capacity import DoesNotFit, KvCapacity, kv_capacity, max_sequences
from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import engine_profile
from servewise.deployment.pool import pool_block_tokens, rank_kv_bytes_per_sequence
from servewise.errors import InputError, UnknownName
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS
from servewise.units import GIB


def served(model: str, accelerator: str, engine: str, limits: Limits, tensor: int = 1) -> Deployment:
    """A catalogue model on catalogue devices, bf16."""
    return Deployment(
        model=load_model(model),
        accelerator=load_accelerator(accelerator),
        kv=BF16,
        activations=BF16,
        engine=engine,
        parallelism=Parallelism(tensor=tensor),
        limits=limits,
    )


@pytest.mark.parametrize(
    ("asked", "logged_tokens"),
    [
        # https://github.com/vllm-project/vllm/issues/10517, RTX 3090, at 20,000 and 29,000 tokens of context
        (served("llama-3.1-8b", "rtx-3090", "vllm-0.6.4", Limits(max_context_tokens=20_000)), 31_232),
        # https://github.com/vllm-project/vllm/pull/2031, A100 80GB, before and after
        (served("llama-2-7b", "a100-80gb", "vllm-0.2.4", Limits()), 119_184),
        (served("llama-2-7b", "a100-80gb", "vllm-0.2.5", Limits()), 117_616),
        # inference-sim testdata, H100, max_num_seqs 128, max_num_batched_tokens 2,048
        (served("llama-2-7b", "h100-sxm", "vllm-0.15", Limits(max_sequences=128, max_batched_tokens=2048)), 119_408),
        (served("qwen2.5-7b", "h100-sxm", "vllm-0.15", Limits(max_sequences=128, max_batched_tokens=2048)), 1_045_632),
        (served("yi-34b", "h100-sxm", "vllm-0.15", Limits(max_sequences=128, max_batched_tokens=2048), 2), 332_688),
        # LLMServingSim bench/examples, RTX 4090, vLLM 0.19
        (served("llama-3.1-8b", "rtx-4090", "vllm-0.19", Limits(max_context_tokens=32768, max_sequences=256)), 41_408),
        # https://github.com/vllm-project/vllm/issues/21348, 4 x H100, SGLang at 0.93
        (served("qwen3-235b-a22b-fp8", "h100-sxm", "sglang-0.4.9", Limits(memory_utilization=0.93), 4), 367_404),
    ],
    ids=lambda value: value.model.name + " " + value.engine if isinstance(value, Deployment) else str(value),
)
def test_logged_tokens(asked: Deployment, logged_tokens: int) -> None:
    """KV tokens are within 5% of what the engine printed."""
    capacity = kv_capacity(asked)

    assert isinstance(capacity, KvCapacity)
    assert capacity.kv_tokens == pytest.approx(logged_tokens, rel=0.05)


def test_gpt_oss_refused_by_defaults() -> None:
    """gpt-oss-120b on one H100 leaves nothing for a cache with 1,024 sequences: -2.14 GiB (vLLM issue 23278)."""
    refused = kv_capacity(served("gpt-oss-120b", "h100-sxm", "vllm-0.10.1", Limits()))

    assert isinstance(refused, DoesNotFit)
    assert refused.short_by_bytes == pytest.approx(2.14 * GIB, rel=0.1)


def test_window_layers_of_gpt_oss() -> None:
    """131,072 tokens need 4.54 GiB with 1,024 tokens a step: 18 layers in full, 18 by window (vLLM issue 27508)."""
    asked = served("gpt-oss-120b", "h100-sxm", "vllm-0.11", Limits(max_batched_tokens=1024))
    one = rank_kv_bytes_per_sequence(asked, engine_profile(asked.engine), 131_072, 16, 1.0)

    assert round(one / GIB, 2) == 4.54


def test_old_engines_charge_windows_in_full() -> None:
    """Llama 4 in vLLM 0.8 keeps every token in every layer: 24.0 GiB for 1,048,576 tokens at TP8 (issue 16118)."""
    asked = served("llama-4-scout-17b-16e", "h100-sxm", "vllm-0.8.3", Limits(), 8)
    one = rank_kv_bytes_per_sequence(asked, engine_profile(asked.engine), 1_048_576, 16, 1.0)

    assert one == 24 * GIB


def test_groups_of_gemma_3() -> None:
    """Gemma 3 27B has 52 windowed and 10 full layers: groups of 10, so 60 windowed layers are held (vLLM's padding)."""
    asked = served("gemma-3-27b", "h100-sxm", "vllm-0.11", Limits(max_batched_tokens=2048))
    one = rank_kv_bytes_per_sequence(asked, engine_profile(asked.engine), 32_768, 16, 1.0)
    inside = 1023 + 2048 + 1 + 16  # window less one, a step, up to whole blocks, and the block partly inside

    assert one == 2 * 16 * 128 * 2 * (10 * 32_768 + 60 * inside)


def test_states_grow_the_block() -> None:
    """Qwen3.6-27B at TP2 with an fp8 cache gets blocks of 1,568 tokens, so that a page holds a layer's state.

    The block is as printed for Qwen3.8-27B, of equal shape: https://github.com/mitchross/talos-argocd-proxmox/pull/1995
    """
    asked = replace(served("qwen3.6-27b", "rtx-3090", "vllm-0.20", Limits(), 2), kv=FORMATS["fp8"])

    assert pool_block_tokens(asked, engine_profile(asked.engine)) == 1568


def test_hybrid_concurrency() -> None:
    """Qwen3.6-35B-A3B at TP2, fp8 cache: 17.02 GiB hold 12.90 requests of 262,144 tokens (club-3090 BENCHMARKS.md)."""
    asked = replace(served("qwen3.6-35b-a3b", "rtx-5090", "vllm-0.20", Limits(), 2), kv=FORMATS["fp8"])
    profile = engine_profile(asked.engine)
    one = rank_kv_bytes_per_sequence(asked, profile, 262_144, pool_block_tokens(asked, profile), 1.0)

    assert 17.02 * GIB / one == pytest.approx(12.90, rel=0.03)


@pytest.mark.parametrize("engine", ["ideal", "vllm-0.4", "vllm", "sglang", "trtllm", "llamacpp"])
@pytest.mark.parametrize("memory", [10 * GIB, 23.58 * GIB + 0.5, 80e9])
def test_breakdown_is_the_memory(engine: str, memory: float) -> None:
    """The terms sum to the device's memory, to the byte, whether it fits or not."""
    answer = kv_capacity(deployment(LLAMA_2_7B, memory, engine=engine, parallelism=Parallelism(tensor=2)))

    assert sum(term.bytes for term in answer.breakdown) == math.floor(memory)


def test_short_by_what_is_missing() -> None:
    """With as much more memory as it is short by, it fits; with one byte less it does not."""
    short = kv_capacity(deployment(LLAMA_2_7B, 13e9, limits=Limits(max_context_tokens=4096)))
    assert isinstance(short, DoesNotFit)
    needed = LLAMA_2_7B.parameters * 2 + 4096 * 524_288

    assert short.short_by_bytes == needed - 13e9
    for extra, fits in ((0, True), (-1, False)):
        again = deployment(LLAMA_2_7B, 13e9 + short.short_by_bytes + extra, limits=Limits(max_context_tokens=4096))
        assert kv_capacity(again).fits is fits


def test_shortage_says_what_would_fit() -> None:
    """The cure names fewer tokens where some would fit, smaller formats and more accelerators."""
    short = kv_capacity(deployment(LLAMA_2_7B, 15e9, limits=Limits(max_context_tokens=4096)))

    (caveat,) = short.caveats
    assert "a context of at most about 2,905 tokens" in caveat.cure
    assert "fp8 weights" in caveat.cure
    assert "more than 1 x test-gpu" in caveat.cure


def test_cures_cure() -> None:
    """Each number in the cure of a refusal, taken by itself, makes gpt-oss-120b fit on the H100."""
    refused = served("gpt-oss-120b", "h100-sxm", "vllm-0.10.1", Limits())
    cure = kv_capacity(refused).caveats[0].cure
    sequences, share = re.findall(r"at most (\d+) sequences|utilisation of ([\d.]+)", cure)
    told = (Limits(max_sequences=int(sequences[0])), Limits(memory_utilization=float(share[1])))

    assert all(kv_capacity(replace(refused, limits=limits)).fits for limits in told)
    assert not kv_capacity(replace(refused, limits=Limits(max_sequences=int(sequences[0]) + 2))).fits


def test_blocks_are_whole() -> None:
    """vLLM's pool holds whole blocks of 16, and a sequence takes whole blocks."""
    asked = deployment(LLAMA_3_8B, 40 * GIB, engine="vllm-0.9")
    capacity = kv_capacity(asked)

    assert isinstance(capacity, KvCapacity)
    assert capacity.kv_tokens == capacity.blocks * 16
    assert max_sequences(asked, capacity, 17) == max_sequences(asked, capacity, 32) > max_sequences(asked, capacity, 33)


def test_llamacpp_reserves_every_slot() -> None:
    """llama.cpp allocates n_ctx x slots at load: four slots of 4,096 of Llama 2 7B are 8 GiB in 16 bits."""
    limits = Limits(max_sequences=4, max_context_tokens=4096)
    capacity = kv_capacity(deployment(LLAMA_2_7B, 24 * GIB, engine="llamacpp", limits=limits))

    assert isinstance(capacity, KvCapacity)
    assert (capacity.kv_budget_bytes, capacity.kv_tokens) == (8 * GIB, 16_384)


@pytest.mark.parametrize(("name", "logged_mib"), [("llama-3-8b", 258.5), ("qwen2.5-7b", 304.0)])
def test_llamacpp_compute_buffer(name: str, logged_mib: float) -> None:
    """One micro-batch of 512 takes what llama.cpp prints as CUDA0 compute buffer: fp32 logits and hidden state."""
    answer = kv_capacity(served(name, "rtx-3090", "llamacpp", Limits()))

    assert {term.name: term.bytes for term in answer.breakdown}["activations"] == logged_mib * 2**20


def test_llamacpp_keeps_an_untied_table_on_the_host() -> None:
    """The input table is not on the device unless it is the output table too."""
    untied, tied = load_model("llama-3-8b"), load_model("llama-3.2-1b")
    weights = [kv_capacity(served(name, "rtx-3090", "llamacpp", Limits())).weight_bytes for name in
               ("llama-3-8b", "llama-3.2-1b")]  # fmt: skip

    assert weights == [2 * (untied.parameters - untied.embedding_parameters), 2 * tied.parameters]


def test_sglang_share_by_size() -> None:
    """In mid-2025 SGLang kept 9.5 GiB and half a GiB an accelerator of an H100, 32 and 4 GiB of a GB200 at DP2."""
    h100, gb200 = load_accelerator("h100-sxm"), load_accelerator("gb200")
    profile = engine_profile("sglang-0.5.3")
    shares = (
        profile.utilization(h100, Parallelism(tensor=4), 8192, 160),
        profile.utilization(gb200, Parallelism(tensor=2, data=2, expert=True), 16384, 512),
    )

    assert shares == (round(1 - 11.5 * GIB / h100.memory_bytes, 3), round(1 - 36 * GIB / gb200.memory_bytes, 3))


@pytest.mark.parametrize(
    ("accelerator", "batched", "graphs", "share"), [("h100-sxm", 8192, 256, 0.836), ("rtx-4090", 2048, 24, 0.847)]
)
def test_sglang_default_share(accelerator: str, batched: int, graphs: int, share: float) -> None:
    """SGLang's own default shares of 2025-10, which it takes of the 0.5-2% larger memory that nvidia-smi prints."""
    ours = engine_profile("sglang").utilization(load_accelerator(accelerator), Parallelism(), batched, graphs)

    assert ours == pytest.approx(share, abs=0.004)


def test_context_beyond_the_pool_is_told() -> None:
    """Without a stated context, a pool below the model's own comes with the caveat that engines refuse it."""
    answer = kv_capacity(served("llama-3.1-8b", "rtx-4090", "vllm-0.19", Limits()))

    assert answer.fits
    assert "context-exceeds-pool" in {caveat.code for caveat in answer.caveats}


@pytest.mark.parametrize(
    "changes",
    [
        {"limits": Limits(memory_utilization=1.5)},
        {"limits": Limits(memory_utilization=math.nan)},
        {"limits": Limits(max_context_tokens=0)},
        {"limits": Limits(block_tokens=-16)},
        {"limits": Limits(max_batched_tokens=10**30)},
        {"parallelism": Parallelism(tensor=0)},
        {"parallelism": Parallelism(pipeline=33)},
        {"parallelism": Parallelism(tensor=8, decode_context=3)},
        {"parallelism": Parallelism(data=True)},
    ],
    ids=str,
)
def test_nonsense_is_refused(changes: dict[str, object]) -> None:
    """Limits and splits that no engine could take are refused in one line."""
    with pytest.raises(InputError):
        kv_capacity(deployment(LLAMA_2_7B, 80e9, engine="vllm", **changes))


def test_unknown_engine_offers_names() -> None:
    """An unknown engine is refused with the nearest names, and so is a malformed version."""
    with pytest.raises(UnknownName, match="vllm"):
        kv_capacity(deployment(LLAMA_2_7B, 80e9, engine="vlm"))
    with pytest.raises(UnknownName):
        engine_profile("vllm-abc")


def test_fp8_cache_doubles_tokens() -> None:
    """An fp8 cache holds twice the tokens of a bf16 one in the same pool."""
    wide, narrow = (kv_capacity(deployment(LLAMA_3_8B, 80e9, kv=each)) for each in (BF16, FORMATS["fp8"]))
    assert isinstance(wide, KvCapacity)
    assert isinstance(narrow, KvCapacity)

    assert narrow.kv_tokens // 2 == wide.kv_tokens
