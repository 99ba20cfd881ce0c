"""Each rule fires on its mistake, with the figure that a hand calculation gives, and not beside it."""

from __future__ import annotations

import pytest
from tests.check.checked import codes, findings, the

VLLM = "vllm serve meta-llama/Llama-3.1-8B-Instruct "
WHOLE = VLLM + "--no-enable-chunked-prefill "
DRAFTS = VLLM + "--speculative-config '{\"num_speculative_tokens\": 4}' "
SIZED = {"model": "llama-3.1-8b", "accelerator": "a100-80gb"}

ALONE = [
    (VLLM + "--max-num-seqs 512 --max-num-batched-tokens 256", "batched-below-sequences", "error"),
    (WHOLE + "--max-num-batched-tokens 2048 --max-model-len 8192", "batched-below-context", "error"),
    (VLLM + "--max-num-seqs 256 --max-num-batched-tokens 300", "prefill-starved", "warning"),
    (VLLM + "--no-enable-chunked-prefill", "prefill-not-chunked", "warning"),
    ("python -m sglang.launch_server --model-path m --chunked-prefill-size -1", "prefill-not-chunked", "warning"),
    ("llama-server -m a.gguf -nocb", "static-batching", "warning"),
    ("max_batch_size: 8\nscheduler_config:\n  batching_type: STATIC\n", "static-batching", "warning"),
    ("llama-server -m a.gguf -c 4096 -np 8", "context-split-over-slots", "warning"),
    ("llama-server -m a.gguf -ctk q4_0", "kv-four-bits", "warning"),
    ("llama-server -m a.gguf -ctv q8_0 -fa off", "contradictory-options", "error"),
    (VLLM + "--gpu-memory-utilization 0.99", "memory-share-too-high", "warning"),
    (VLLM + "--gpu-memory-utilization 1.5", "bad-value", "error"),
    (VLLM + "--gpu-memory-utilization 0.3", "memory-share-too-low", "note"),
    (VLLM + "--cpu-offload-gb 40", "weights-on-host", "warning"),
    (VLLM + "--enforce-eager", "eager-mode", "note"),
    (VLLM + "--pipeline-parallel-size 4 --max-num-seqs 2", "too-few-for-pipeline", "warning"),
    ("CUDA_VISIBLE_DEVICES=0,1 " + VLLM + "-tp 4", "accelerators-asked-and-used", "error"),
    ("docker run --gpus all vllm/vllm-openai:latest --model m -tp 2", "shared-memory-small", "warning"),
    (VLLM + "--data-parallel-size 4", "replicas-without-affinity", "note"),
    (VLLM + "--speculative-config '{\"num_speculative_tokens\": 4}'", "speculation-unmeasured", "note"),
    (DRAFTS + "--max-num-seqs 256", "speculation-at-large-batch", "warning"),
    (VLLM + '--speculative-config \'{"model": "d", "num_speculative_tokens": 12}\'', "speculation-too-long", "note"),
    (VLLM + '--speculative-config \'{"rejection_sample_method": "synthetic"}\'', "speculation-lossy", "warning"),
    (VLLM + "--kv-cache-dtype fp8", "kv-precision-unmeasured", "note"),
    (VLLM + "--quantization awq", "quantisation-unmeasured", "note"),
    (VLLM + "--dtype float32", "wide-floats", "note"),
    (VLLM + "--no-enable-prefix-caching", "prefix-caching-off", "note"),
    ("python -m sglang.launch_server --model-path m --disable-radix-cache", "prefix-caching-off", "note"),
    ("kv_cache_config:\n  enable_block_reuse: false\nmax_batch_size: 8\n", "prefix-caching-off", "note"),
    (VLLM + "--max-num-sqes 8", "misspelt-option", "warning"),
    (VLLM + "--swap-space 4", "removed-option", "warning"),
    ("python -m sglang.launch_server --model-path m --disable-cuda-graph", "deprecated-option", "note"),
    (VLLM + "--kv-cache-dtype fp9", "bad-value", "error"),
    (VLLM + "--tensor-parallel-size two", "bad-value", "error"),
    (VLLM + "--enable-chunked-prefill False", "bad-value", "error"),  # argparse: unrecognized arguments: False
    (VLLM + "--enable-prefix-caching=False", "bad-value", "error"),  # argparse: ignored explicit argument 'False'
    (VLLM + "--max-model-len --port 1", "bad-value", "error"),  # argparse: expected one argument
    (VLLM + "--enable-prefix-caching --no-enable-prefix-caching", "contradictory-options", "warning"),
    (VLLM + "--port 1 --port 2", "contradictory-options", "warning"),
    (VLLM + "--something-of-my-own", "unknown-option", "note"),
    (VLLM + "--host 0.0.0.0", "exposed-without-key", "note"),
    (VLLM + "--api-key 8f14e45fceea167a5a36dedd4bea2543", "secret-in-file", "warning"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "severity"), ALONE, ids=[code for _, code, _ in ALONE])
def test_a_mistake_is_found_at_its_option(text: str, code: str, severity: str) -> None:
    """The finding has its severity and stands where its option stands."""
    found = next(each for each in findings(text) if each.code == code)
    assert found.severity == severity
    line = text.split("\n")[found.place.line - 1]
    if not text.startswith(("max_batch", "kv_cache")):
        assert line[found.place.column - 1 :].startswith(found.place.option)


@pytest.mark.parametrize(
    "text",
    [
        VLLM + "--max-num-seqs 256 --max-num-batched-tokens 8192 --gpu-memory-utilization 0.9",
        VLLM + "--tensor-parallel-size 2 --host 127.0.0.1 --dtype bfloat16",
        VLLM + "--host 0.0.0.0 --api-key $KEY",
        "llama-server -m a.gguf -c 32768 -np 8 -ctk f16 -fa on",
        "CUDA_VISIBLE_DEVICES=0,1 " + VLLM + "-tp 2",
        "docker run --gpus all --ipc=host vllm/vllm-openai:latest --model m -tp 2",
        "python -m sglang.launch_server --model-path m --tp 2 --mem-fraction-static 0.88 --chunked-prefill-size 8192",
        "trtllm-serve m --tp_size 2 --max_batch_size 256 --max_num_tokens 8192",
    ],
)
def test_a_sound_launch_has_no_finding(text: str) -> None:
    """Nothing is said of a launch that makes no mistake."""
    assert findings(text) == ()


def test_the_pool_is_set_against_the_sequences() -> None:
    """Llama 3.1 8B keeps 131,072 bytes a token (2 x 8 heads x 128 x 32 layers x 2 bytes), so 80 GB hold few at 131k."""
    found = the("kv-not-counted", VLLM + "--max-num-seqs 64 --max-model-len 131072", **SIZED)
    tokens = found.figures["kv_tokens"]
    weights = 8_030_261_248 * 2
    most = 0.92 * 85.1e9 - weights

    assert found.severity == "warning"
    assert found.figures["sequences_held"] == tokens // 131_072
    assert 0.8 * most / 131_072 < tokens < most / 131_072
    assert f"{64 * 131_072:,}" in found.why


def test_a_pool_that_is_large_enough_is_no_finding() -> None:
    """Sixteen sequences of 8,192 tokens need 131,072 of some 400,000."""
    assert not findings(VLLM + "--max-num-seqs 16 --max-model-len 8192", **SIZED)


def test_what_does_not_fit_is_an_error_with_what_is_missing() -> None:
    """141 GB of 70 billion weights in 16 bits do not fit one card of 80 GB, and 131k tokens not beside them on two."""
    big = {"model": "llama-3.1-70b", "accelerator": "a100-80gb"}
    alone = the("weights-do-not-fit", "vllm serve m", **big)
    assert 141e9 - 80e9 < alone.figures["short_by_bytes"] < 141e9 - 60e9
    assert the("context-does-not-fit", "vllm serve m -tp 2", **big).severity == "error"


def test_a_chunk_that_freezes_decoding_is_timed() -> None:
    """16,384 tokens of 70 billion parameters take at least 2 x 70e9 x 16,384 / 312e12 / 4 s on four A100."""
    found = the(
        "decode-frozen",
        "vllm serve m -tp 4 --max-num-batched-tokens 16384",
        model="llama-3.1-70b",
        accelerator="a100-80gb",
    )
    assert found.figures["step_s"] > 2 * 70e9 * 16_384 / 312e12 / 4


def test_heads_decide_the_degree() -> None:
    """32 heads are not divided by 3; 8 KV heads over 16 ranks are kept twice."""
    assert the("tp-does-not-divide", VLLM + "-tp 3", **SIZED).severity == "error"
    assert "2 times" in the("kv-heads-copied", VLLM + "-tp 16", **SIZED).why
    assert "kv-heads-copied" not in codes(VLLM + "-tp 8", **SIZED)


def test_bits_that_are_not_needed_and_not_in_the_hardware() -> None:
    """16 GB of weights fit 80 GB as they are; an A100 has no fp8 units, an H100 has."""
    text = VLLM + "--quantization fp8 --max-num-seqs 8 --max-model-len 8192"
    assert {"quantisation-not-needed", "precision-not-in-hardware"} <= codes(text, **SIZED)
    assert "precision-not-in-hardware" not in codes(text, model="llama-3.1-8b", accelerator="h100-sxm")


def test_the_idle_share_of_a_pipeline_is_its_bubble() -> None:
    """(p - 1) / (m + p - 1) with 4 stages and 2 sequences is 3/5 (GPipe)."""
    assert the("too-few-for-pipeline", VLLM + "-pp 4 --max-num-seqs 2").figures["idle_share"] == pytest.approx(0.6)


def test_a_limit_of_one_batch_counts_for_each_stage() -> None:
    """TensorRT-LLM's max_batch_size is that of each batch in flight: 2 over 4 stages are 8 sequences, enough for all,
    and 128 over two are 256, as many as vLLM's 256 over two."""
    stages = "trtllm-serve m --pp_size {} --max_batch_size {} --max_seq_len 8192"
    assert "too-few-for-pipeline" not in codes(stages.format(4, 2))
    assert the("kv-not-counted", stages.format(2, 128), **SIZED).figures["sequences"] == 256
    assert (
        the("kv-not-counted", VLLM + "-pp 2 --max-num-seqs 256 --max-model-len 8192", **SIZED).figures["sequences"]
        == 256
    )


MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: a}}
spec:
  replicas: {replicas}
  template:
    spec:
      containers:
      - name: a
        image: vllm/vllm-openai:latest
        args: ["--model", "m", "--tensor-parallel-size", "{tensor}"{more}]
        resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}
        {probe}
{mount}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{type: {type}}}
"""


def manifest(**given: object) -> str:
    """The manifest with some of it changed."""
    usual = {
        "replicas": 1,
        "tensor": 1,
        "gpus": 1,
        "more": "",
        "probe": "",
        "mount": "",
        "name": "a",
        "type": "ClusterIP",
    }
    return MANIFEST.format(**(usual | given))


def test_a_manifest_is_judged_as_a_whole() -> None:
    """Accelerators, shared memory, probes, affinity, exposure and a Service's name, each only where it is wrong."""
    assert codes(manifest()) == set()
    assert codes(manifest(tensor=2, gpus=2)) == {"shared-memory-small"}
    assert codes(manifest(tensor=4, gpus=2)) == {"shared-memory-small", "accelerators-asked-and-used"}
    assert codes(manifest(replicas=3)) == {"replicas-without-affinity"}
    assert codes(manifest(type="LoadBalancer")) == {"exposed-without-key"}
    assert codes(manifest(name="vllm")) == {"service-named-vllm"}
    assert codes(manifest(probe="livenessProbe: {httpGet: {path: /health, port: 8000}}")) == {"killed-while-loading"}
    assert codes(manifest(more=', "--enforce-eager"')) == {"eager-mode"}


def test_a_hub_token_is_found_anywhere() -> None:
    """A line with a Hugging Face token in clear is named, a variable is not."""
    token = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0"
    assert "secret-in-file" in codes(f"export HF_TOKEN={token}\nvllm serve m\n")
    assert "secret-in-file" not in codes("export HF_TOKEN=$HF_TOKEN\nvllm serve m\n")
