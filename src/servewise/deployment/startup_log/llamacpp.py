"""llama.cpp's lines; the device with the largest buffer of a kind stands.

Wordings: src/llama-model.cpp and llama-context.cpp, builds of 2024-07 to 2026-08 ("llm_load_tensors: CUDA0 buffer
size", "load_tensors: CUDA0 model buffer size", "llama_kv_cache: size = ... cells", "KV self size").
"""

from __future__ import annotations

from servewise.deployment.startup_log.patterns import NUMBER, Pattern, count, first, largest, mib, pattern

_DEVICE = r"(?<![\w.])(?:CUDA|ROCm|Vulkan|SYCL|Metal|MTL|HIP)\w*"
_TENSORS = r"load_tensors:\s+"

PATTERNS: tuple[Pattern, ...] = (
    pattern("version", r"(?:build|version): (\d{1,12}) \(", reduce=first),
    pattern("model", r"loaded meta data with .*? from (\S+)", reduce=first),
    pattern("weight_bytes", rf"{_TENSORS}{_DEVICE} (?:model )?buffer size = +{NUMBER} MiB", mib, largest),
    pattern("kv_bytes", rf"{_DEVICE} KV buffer size = +{NUMBER} MiB", mib, largest),
    pattern("state_bytes", rf"{_DEVICE} RS buffer size = +{NUMBER} MiB", mib, largest),
    pattern("activation_bytes", rf"{_DEVICE} compute buffer size = +{NUMBER} MiB", mib, largest),
    pattern("whole_kv_bytes", rf"(?:KV self size *|llama_kv_cache\w*: size) = +{NUMBER} MiB", mib, largest),
    pattern("kv_tokens", r"MiB \( *(\d{1,12}) cells", count, largest),
    pattern("n_ctx", r"\bn_ctx +=+ +(\d{1,12})", count, largest),
    pattern("max_sequences", r"\bn_seq_max += (\d{1,12})", count, largest),
    pattern("max_batched_tokens", r"\bn_ubatch += (\d{1,12})", count, largest),
    pattern("total_bytes", rf"using device {_DEVICE} \(.*?\).* - {NUMBER} MiB free", mib, first),
    pattern("kv_dtype", r"MiB, K \((\w+)\)", reduce=first),
)
