"""Start-up logs of three engines are read as they stand and set against the prediction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deployment import logs
from tests.deployment.builders import LLAMA_3_8B, LLAMA_31_8B, Limits, Parallelism, deployment

from servewise.deployment.startup_log.read import parse_startup_log, read_startup_log
from servewise.deployment.startup_log.reconcile import reconcile, with_logged_settings
from servewise.errors import InputError
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.units import GIB, MIB


def test_v0_profile_line() -> None:
    """vLLM 0.6.4's summary gives every term; the activation peak is torch's peak less the weights."""
    facts = parse_startup_log(logs.VLLM_V0_3090)

    assert facts.engine == "vllm"
    assert facts.weight_bytes == 14.9888 * GIB
    assert facts.activation_bytes == pytest.approx((17.06 - 14.9888) * GIB)
    assert (facts.non_torch_bytes, facts.kv_bytes) == (0.35 * GIB, 3.81 * GIB)
    assert (facts.total_bytes, facts.memory_utilization) == (23.58 * GIB, 0.9)
    assert (facts.blocks, facts.pool_tokens, facts.max_context_tokens) == (1952, 31232, 20000)


def test_v0_sentence_with_colours() -> None:
    """The later V0 sentence is read through colour codes and line prefixes."""
    facts = parse_startup_log(logs.VLLM_V0_TESLA)

    assert (facts.weight_bytes, facts.non_torch_bytes) == (7.51 * GIB, 0.39 * GIB)
    assert (facts.activation_bytes, facts.kv_bytes) == (2.53 * GIB, 3.76 * GIB)
    assert (facts.blocks, facts.max_concurrency) == (3852, 1.54)


def test_v1_summary() -> None:
    """vLLM 0.11's closing line gives weights, activations, non-torch memory and graphs."""
    facts = parse_startup_log(logs.VLLM_V1_4090)

    assert (facts.weight_bytes, facts.activation_bytes) == (8.8 * GIB, 1.4 * GIB)
    assert (facts.non_torch_bytes, facts.graph_bytes) == (0.02 * GIB, 0.68 * GIB)
    assert (facts.total_bytes, facts.memory_utilization, facts.kv_bytes) == (23.53 * GIB, 0.8, 8.6 * GIB)


def test_newest_wordings() -> None:
    """Tokens and concurrency on one line, and the estimate of graphs, as vLLM prints them since 0.27."""
    facts = parse_startup_log(logs.VLLM_027)

    assert (facts.kv_tokens, facts.max_context_tokens, facts.max_concurrency) == (460_496, 131_072, 3.51)
    assert facts.estimated_graph_bytes == 0.36 * GIB


def test_settings_of_v1() -> None:
    """Version, model, split and limits come from the engine's own description of its configuration."""
    facts = parse_startup_log(logs.VLLM_CONFIG)

    assert (facts.version, facts.model) == ("0.20.2rc1.dev249+base", "lukealonso/GLM-5.1-NVFP4-MTP")
    assert (facts.tensor, facts.pipeline, facts.decode_context) == (8, 1, 2)
    assert (facts.memory_utilization, facts.max_batched_tokens, facts.max_sequences) == (0.865, 8192, 64)
    assert (facts.max_context_tokens, facts.kv_dtype, facts.kv_tokens) == (202_752, "fp8", 680_192)


def test_both_refuse() -> None:
    """A refused context is predicted as refused, and the pools are still compared (vLLM issue 13061)."""
    asked = replace(
        deployment(LLAMA_31_8B, 24 * GIB, engine="vllm-0.7.2", parallelism=Parallelism(tensor=2)),
        model=load_model("qwen2.5-14b"),
        accelerator=load_accelerator("rtx-4090"),
    )
    result = reconcile(asked, parse_startup_log(logs.VLLM_TOO_LONG))

    assert result.verdict.startswith("both refuse")
    assert result.kv_ratio == pytest.approx(1, abs=0.05)


def test_refusal() -> None:
    """A refusal states what is needed and what there is."""
    facts = parse_startup_log(logs.VLLM_REFUSAL)

    assert facts.refusal
    assert (facts.needed_kv_bytes, facts.kv_bytes) == (4.54 * GIB, 1.71 * GIB)


def test_sglang() -> None:
    """SGLang's K and V sizes add up to the pool; settings come from its arguments."""
    facts = parse_startup_log(logs.SGLANG)

    assert (facts.engine, facts.tensor, facts.memory_utilization) == ("sglang", 4, 0.8)
    assert facts.kv_bytes == pytest.approx(2 * 5.69 * GIB)
    assert (facts.kv_tokens, facts.max_batched_tokens, facts.max_context_tokens) == (298_447, 2048, 40_960)
    assert (facts.weight_bytes, facts.available_after_load_bytes) == (7.08 * GIB, 16.0 * GIB)


def test_llamacpp() -> None:
    """llama.cpp's buffers on the device are read, those in host memory are not."""
    facts = parse_startup_log(logs.LLAMACPP)

    assert (facts.engine, facts.weight_bytes, facts.kv_bytes) == ("llamacpp", 5060.88 * MIB, 4352 * MIB)
    assert (facts.activation_bytes, facts.state_bytes) == (808.02 * MIB, 100.5 * MIB)
    assert (facts.kv_tokens, facts.max_sequences) == (262_144, 2)


def test_llamacpp_two_caches() -> None:
    """The cache of full layers and that of windowed layers are added up; the other device's are not."""
    facts = parse_startup_log(logs.LLAMACPP_WINDOWS)

    assert facts.kv_bytes == (256 + 96) * MIB


def test_workers_smallest_pool() -> None:
    """Of several workers the smallest pool and the fewest tokens stand."""
    text = "(TP0) Available KV cache memory: 8.69 GiB\n(TP1) Available KV cache memory: 7.50 GiB\nweights"
    facts = parse_startup_log(text)

    assert facts.kv_bytes == 7.5 * GIB


def test_reconcile_sets_terms_side_by_side() -> None:
    """Against vLLM 0.6.4's log of Llama-3.1-8B, every term is set beside the log's, with settings from the log."""
    result = reconcile(deployment(LLAMA_31_8B, 24 * GIB, engine="vllm-0.6.4"), parse_startup_log(logs.VLLM_V0_3090))
    rows = {row.term: row for row in result.rows}

    assert result.deployment.limits.max_context_tokens == 20_000
    assert result.deployment.accelerator.memory_bytes == 23.58 * GIB
    assert rows["weights"].predicted_bytes == pytest.approx(14.9888 * GIB, abs=1e5 + 0.00005 * GIB)
    assert rows["activations"].predicted_bytes == pytest.approx(rows["activations"].logged_bytes, rel=0.01)
    assert result.logged_kv_tokens == 31_232
    assert result.kv_ratio == pytest.approx(1, abs=0.05)
    assert "they agree" in result.verdict


def test_reconcile_explains_the_gap() -> None:
    """A server whose unstated max_num_seqs took 9.37 GiB of activations is told apart from the default by that term."""
    result = reconcile(deployment(LLAMA_3_8B, 40 * GIB, engine="vllm-0.6.6"), parse_startup_log(logs.VLLM_V0_A100))

    assert result.kv_ratio is not None
    assert result.kv_ratio > 1.5
    assert "largest difference is in activations: 8.15 GiB less predicted than logged" in result.verdict


def test_stated_settings_stay() -> None:
    """What the user states is not overwritten by the log."""
    asked = deployment(
        LLAMA_31_8B,
        24 * GIB,
        engine="vllm",
        limits=Limits(memory_utilization=0.5),
        parallelism=Parallelism(tensor=2),
    )
    filled = with_logged_settings(asked, parse_startup_log(logs.SGLANG))

    assert (filled.limits.memory_utilization, filled.parallelism.tensor) == (0.5, 2)
    assert filled.engine == "sglang"


@pytest.mark.parametrize("text", ["", "hello\nworld\n", "GPU KV cache size: many tokens", "\x00\xff" * 50])
def test_nothing_recognised(text: str) -> None:
    """A file without a line about memory is refused in one line."""
    with pytest.raises(InputError, match="no line about weights or KV cache"):
        parse_startup_log(text)


def test_unreadable_file(tmp_path: Path) -> None:
    """A missing file, a folder and an impossible name are refused, never a traceback."""
    for path in (tmp_path / "none.log", tmp_path, "a\0b"):
        with pytest.raises(InputError, match="cannot read the log"):
            read_startup_log(path)


LINES = [line for text in vars(logs).values() if isinstance(text, str) for line in text.splitlines()]


@given(
    st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=60)), max_size=12),
    st.text(alphabet="0123456789,.-=: {}'\"eE\r\n", max_size=80),
)
def test_fuzz_lines(lines: list[str], noise: str) -> None:
    """Cut, mixed and noisy logs give facts or an InputError, nothing else."""
    mixed = "\n".join(line[: len(line) - len(noise) % 7] + noise for line in lines)
    try:
        facts = parse_startup_log(mixed)
    except InputError:
        return
    try:
        reconcile(deployment(LLAMA_31_8B, 80 * GIB, engine="vllm"), facts)
    except InputError:
        return


@given(st.binary(max_size=300))
def test_fuzz_bytes(raw: bytes) -> None:
    """Bytes that are no text are read without a traceback."""
    text = raw.decode("utf-8", errors="replace")
    try:
        parse_startup_log(text + "\nAvailable KV cache memory: 8.11 GiB" + text)
    except InputError:
        return


def test_a_log_of_days_is_read_at_its_start(tmp_path: Path) -> None:
    """The facts stand in the first lines; the millions that follow them cost no more than a second or two."""
    line = "INFO [loggers.py:116] Engine 000: Avg prompt throughput: 12.3 tokens/s, GPU KV cache usage: 1.2%\n"
    path = tmp_path / "vllm.log"
    path.write_text("INFO GPU KV cache size: 428,336 tokens\n" + line * 400_000)
    began = process_time()

    assert read_startup_log(path).kv_tokens == 428_336
    assert process_time() - began < 10.0
