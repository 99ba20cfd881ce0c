"""SGLang's lines; its GB are binary.

Wordings: python/sglang/srt/model_executor/model_runner.py ("Load weight end", "Memory pool end"), mem_cache/
memory_pool.py ("KV Cache is allocated"), managers/scheduler.py ("max_total_num_tokens="), 0.3 of 2024 to 0.5 of 2026.
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

PATTERNS: tuple[Pattern, ...] = (
    pattern("version", r"sglang(?:==| version:? )v?(\d+\.\d+[\w.+]*)", reduce=first),
    pattern("model", r"ServerArgs\(model_path='([^']+)'", reduce=first),
    pattern("available_before_load_bytes", rf"Load weight begin\. avail mem={NUMBER} GB", gib, smallest),
    pattern("available_after_load_bytes", rf"Load weight end\..*?avail mem={NUMBER} GB", gib, smallest),
    pattern("weight_bytes", rf"Load weight end\..*?mem usage={NUMBER} GB", gib, largest),
    pattern("kv_tokens", rf"KV Cache is allocated\..*?#tokens: {COUNT}", count, smallest),
    pattern("k_bytes", rf"KV Cache is allocated\..*?\bK size: {NUMBER} GB", gib, smallest),
    pattern("v_bytes", rf"KV Cache is allocated\..*?\bV size: {NUMBER} GB", gib, smallest),
    pattern("kv_bytes", rf"KV Cache is allocated\..*?\bKV size: {NUMBER} GB", gib, smallest),
    pattern("kv_dtype", r"KV Cache is allocated\. dtype: (?:torch\.)?([a-z]\w+)", reduce=first),
    pattern("kv_dtype", r"Using KV cache dtype: (?:torch\.)?([a-z]\w+)", reduce=first),
    pattern("state_bytes", rf"Mamba Cache is allocated\..*?ssm_state size: {NUMBER} ?GB", gib, largest),
    pattern("graph_bytes", rf"Capture (?:\w+ )?(?:cuda|npu) graph end\..*?mem usage={NUMBER} GB", gib, largest),
    pattern("kv_tokens", rf"max_total_num_tokens={COUNT}", count, smallest),
    pattern("max_batched_tokens", rf"chunked_prefill_size={COUNT}", count, first),
    pattern("max_running", rf"max_running_requests={COUNT}", count, smallest),
    pattern("max_context_tokens", rf"context_len={COUNT}", count, first),
    pattern("memory_utilization", rf"mem[-_]fraction[-_]static[= ]{NUMBER}", float, first),
    pattern("tensor", r"tp[-_]size[= ](\d{1,12})", count, first),
    pattern("pipeline", r"pp[-_]size[= ](\d{1,12})", count, first),
)
