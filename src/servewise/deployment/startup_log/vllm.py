"""vLLM's lines, V0 and V1.

Wordings: vllm/worker/worker.py v0.4-v0.8 ("the current vLLM instance can use", "Memory profiling results"),
vllm/executor/*.py ("# GPU blocks"), vllm/v1/worker/gpu_worker.py v0.8-v0.29 ("Available KV cache memory", "Actual
usage is"), vllm/v1/core/kv_cache_utils.py ("GPU KV cache size", "Maximum concurrency"), v0.27 both on one line.
"""

from __future__ import annotations

from servewise.deployment.startup_log.patterns import (
    COUNT,
    NUMBER,
    Pattern,
    count,
    first,
    gib,
    largest,
    pattern,
    smallest,
)

WHOLE = r"(\d{1,6})"
_SETTING = r"['\"]?\s*[=: ]\s*['\"]?"

PATTERNS: tuple[Pattern, ...] = (
    pattern("version", r"vLLM API server version v?(\d+\.\d+[\w.+]*)", reduce=first),
    pattern("version", r"Initializing an? (?:V\d )?LLM engine \(v(\d+\.\d+[\w.+]*)\)", reduce=first),
    pattern("model", r"Initializing an? (?:V\d )?LLM engine \(v[^)]*\) with config:? ?model='([^']+)'", reduce=first),
    pattern("model", r"Starting to load model (\S+?)\.\.\.", reduce=first),
    pattern("weight_bytes", rf"Loading model weights took {NUMBER} Gi?B", gib, largest),
    pattern("weight_bytes", rf"Model loading took {NUMBER} Gi?B", gib, largest),
    pattern("weight_bytes", rf"model weights take {NUMBER} ?GiB", gib, largest),
    pattern("weight_bytes", rf"Actual usage is {NUMBER} GiB for weight", gib, largest),
    pattern("consumed_bytes", rf"Actual usage is {NUMBER} GiB for consumed memory", gib, largest),
    pattern("non_torch_bytes", rf"non_torch_memory(?: takes |=|\s+){NUMBER} ?GiB", gib, largest),
    pattern("non_torch_bytes", rf"{NUMBER} GiB for non-torch memory", gib, largest),
    pattern("activation_bytes", rf"PyTorch activation peak memory(?: takes)?\s+{NUMBER} ?GiB", gib, largest),
    pattern("activation_bytes", rf"{NUMBER} GiB for peak activation", gib, largest),
    pattern("peak_torch_bytes", rf"peak_torch_memory={NUMBER}GiB", gib, largest),
    pattern("graph_bytes", rf"Graph capturing finished in .*?took {NUMBER} GiB", gib, largest),
    pattern("graph_bytes", rf"{NUMBER} GiB for CUDAGraph memory", gib, largest),
    pattern("estimated_graph_bytes", rf"Estimated CUDA graph memory: {NUMBER} GiB", gib, largest),
    pattern("total_bytes", rf"total_gpu_memory(?: \(|=|\s+){NUMBER} ?GiB", gib, smallest),
    pattern("total_bytes", rf"Free memory on device \(\d[\d.]{{0,15}}/{NUMBER} GiB\)", gib, smallest),
    pattern("memory_utilization", rf"gpu_memory_utilization(?: \(|=|\s+){NUMBER}", float, first),
    pattern("memory_utilization", rf"Desired GPU memory utilization is \({NUMBER},", float, first),
    pattern("memory_utilization", rf"gpu[-_]memory[-_]utilization{_SETTING}{NUMBER}", float, first),
    pattern("kv_bytes", rf"memory reserved for KV Cache is {NUMBER} ?GiB", gib, smallest),
    pattern("kv_bytes", rf"kv_cache_size={NUMBER}GiB", gib, smallest),
    pattern("kv_bytes", rf"available_kv_cache_memory\s+{NUMBER}GiB", gib, smallest),
    pattern("kv_bytes", rf"Available KV cache memory: {NUMBER} GiB", gib, smallest),
    pattern("kv_bytes", rf"available KV cache memory \({NUMBER} GiB\)", gib, smallest),
    pattern("blocks", rf"# (?:GPU|CUDA|ROCM|XPU) blocks: {COUNT}", count, smallest),
    pattern("block_tokens", rf"block[-_]size{_SETTING}{WHOLE}", count, first),
    pattern("kv_tokens", rf"KV cache size: {COUNT} tokens", count, smallest),
    pattern("kv_tokens", rf"stored in KV cache \({COUNT}\)", count, smallest),
    pattern("max_context_tokens", rf"Maximum concurrency for {COUNT} tokens", count, first),
    pattern("max_context_tokens", rf"max(?:_model_len|-model-len|_seq_len){_SETTING}{COUNT}", count, first),
    pattern("max_context_tokens", rf"max seq len \({COUNT}\)", count, first),
    pattern("max_concurrency", rf"tokens per request: {NUMBER}x", float, smallest),
    pattern("needed_kv_bytes", rf"\(?{NUMBER} GiB KV cache is needed", gib, largest),
    pattern("refusal", r"(No available memory for the cache blocks)"),
    pattern("refusal", r"(KV cache is needed, which is larger than the available KV cache memory)"),
    pattern("refusal", r"(is larger than the maximum number of tokens that can be stored in KV cache)"),
    pattern("max_batched_tokens", rf"max[-_]num[-_]batched[-_]tokens{_SETTING}{COUNT}", count, first),
    pattern("max_sequences", rf"max[-_]num[-_]seqs{_SETTING}{COUNT}", count, first),
    pattern("tensor", rf"tensor[-_]parallel[-_]size{_SETTING}{WHOLE}", count, first),
    pattern("decode_context", rf"decode[-_]context[-_]parallel[-_]size{_SETTING}{WHOLE}", count, first),
    pattern("pipeline", rf"pipeline[-_]parallel[-_]size{_SETTING}{WHOLE}", count, first),
    pattern("kv_dtype", r"kv[-_]cache[-_]dtype['\"]?\s*[=: ]\s*['\"]?(?:torch\.)?([a-z]\w+)", reduce=first),
)
