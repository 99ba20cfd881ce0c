"""llama.cpp's lines; the device with the largest buffer of a kind stands.

Wordings: src/llama-model.cpp and llama-context.cpp, builds of 2024-07 to 2026-08 ("llm_load_tensors: CUDA0 buffer
size", "load_tensors: CUDA0 model buffer size", "llama_kv_cache: size = ... cells", "KV self size").
"""

from __future__ import annotations

from servewise.deployment.startup_log.patterns import NUMBER, Pattern, Value, count, first, largest, mib, pattern

_DEVICE = r"(?<![\w.])(?:CUDA|ROCm|Vulkan|SYCL|Metal|MTL|HIP)\w*"
_TENSORS = r"load_tensors:\s+"


def fullest_device(values: list[Value]) -> Value:
    """Bytes of the device with the largest caches: windowed and full layers have one each, a probing run repeats them.

    >>> fullest_device(["CUDA0 KV buffer size = 256.0", "CUDA0 KV buffer size = 96.0", "CUDA0 KV buffer size = 96.0"])
    369098752.0
    """
    devices: dict[str, set[float]] = {}
    for text in map(str, values):
        devices.setdefault(text.split()[0], set()).add(mib(text.split()[-1]))
    return max(sum(sizes) for sizes in devices.values())


PATTERNS: tuple[Pattern, ...] = (
    pattern("version", r"(?:build|version): (\d{1,12}) \(", reduce=first),
    pattern("model", r"loaded meta data with .*? from (\S+)", reduce=first),
    pattern("weight_bytes", rf"{_TENSORS}{_DEVICE} (?:model )?buffer size = +{NUMBER} MiB", mib, largest),
    pattern("kv_bytes", rf"({_DEVICE} KV buffer size = +{NUMBER[1:-1]}) MiB", str, fullest_device),
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
