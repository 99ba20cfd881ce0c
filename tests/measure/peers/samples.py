"""Result files as the other clients write them, of one server whose every time is known.

4 streams, 40 requests: each sent when the one before it on its stream ended, first event 0.2 s later, then one each
0.04 s; 16 events of 4 tokens; the stream ends 0.1 s after the last event. TPOT is 0.01 s.
Layouts: vLLM's vllm/benchmarks/serve.py, GuideLLM's src/guidellm/schemas/base/request_stats.py, AIPerf's
docs/tutorials/working-with-profile-exports.md, llama-benchy's schemas/benchmark_report_schema.json (read 2026-11).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

COUNT, STREAMS, EVENTS, TOKENS = 40, 4, 16, 64
TTFT_S, GAP_S, TAIL_S = 0.2, 0.04, 0.1
LATENCY_S = TTFT_S + (EVENTS - 1) * GAP_S + TAIL_S
STARTS_S = [1000.0 + place // STREAMS * LATENCY_S + 0.001 * (place % STREAMS) for place in range(COUNT)]
PROMPTS = [100 + 7 * (place % 11) for place in range(COUNT)]


def _stats(name: str, seconds: float) -> dict[str, float]:
    return {f"{at}_{name}_ms": 1e3 * seconds for at in ("mean", "median", "p99")} | {f"std_{name}_ms": 0.0}


def vllm(*, detailed: bool = True, failed: int = 0, **more: Any) -> dict[str, Any]:
    """``vllm bench serve --save-result``, with ``--save-detailed`` where ``detailed``."""
    good = COUNT - failed
    duration = STARTS_S[-1] + LATENCY_S - STARTS_S[0]
    found: dict[str, Any] = {
        "date": "20261101-120000",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": "org/model",
        "tokenizer_id": "org/model",
        "num_prompts": COUNT,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": STREAMS,
        "duration": duration,
        "completed": good,
        "failed": failed,
        "total_input_tokens": sum(PROMPTS[failed:]),
        "total_output_tokens": TOKENS * good,
        "request_throughput": good / duration,
        "request_goodput": None,
        "output_throughput": TOKENS * good / duration,
        "total_token_throughput": (sum(PROMPTS[failed:]) + TOKENS * good) / duration,
        "max_output_tokens_per_s": 300.0,
        "max_concurrent_requests": STREAMS,
    }
    if detailed:
        bad = [place < failed for place in range(COUNT)]
        found |= {
            "input_lens": PROMPTS,
            "output_lens": [0 if each else TOKENS for each in bad],
            "ttfts": [0.0 if each else TTFT_S for each in bad],
            "itls": [[] if each else [GAP_S] * (EVENTS - 1) for each in bad],
            "start_times": STARTS_S,
            "generated_texts": ["" for _ in bad],
            "errors": ["Internal Server Error" if each else "" for each in bad],
            "latencies": [0.0 if each else LATENCY_S for each in bad],
        }
    found |= _stats("ttft", TTFT_S) | _stats("tpot", (LATENCY_S - TTFT_S) / (TOKENS - 1)) | _stats("itl", GAP_S)
    return found | more


def guidellm(*, keep: int = COUNT) -> dict[str, Any]:
    """GuideLLM's ``benchmarks.json``, which keeps the first ``keep`` requests, one more errored, one incomplete."""

    def distribution(mean: float) -> dict[str, Any]:
        percentiles = {f"p{at}": mean for at in ("01", "05", "10", "25", "50", "75", "90", "95", "99")}
        one = {"mean": mean, "median": mean, "std_dev": 0.0, "count": COUNT, "percentiles": percentiles}
        return {"successful": one, "errored": None, "incomplete": None, "total": one}

    def request(place: int) -> dict[str, Any]:
        start = STARTS_S[place]
        last = start + TTFT_S + (EVENTS - 1) * GAP_S
        return {
            "type_": "generative_request_stats",
            "request_id": f"r{place}",
            "output": "text",
            "info": {
                "status": "completed",
                "timings": {
                    "targeted_start": start,
                    "request_start": start,
                    "first_token_iteration": start + TTFT_S,
                    "last_token_iteration": last,
                    "token_iterations": EVENTS,
                    "request_end": start + LATENCY_S,
                },
            },
            "prompt_tokens": PROMPTS[place],
            "output_tokens": TOKENS,
            "cached_tokens": 16,
        }

    bad = request(0) | {"request_id": "bad", "info": request(0)["info"] | {"error": "500 Internal Server Error"}}
    return {
        "metadata": {"version": 1, "guidellm_version": "0.8.0", "python_version": "3.12", "platform": "Linux"},
        "args": {"backend_kwargs": {"model": "org/model", "api_key": "secret"}},
        "benchmarks": [
            {
                "type_": "generative_benchmark",
                "config": {"strategy": {"type_": "concurrent", "streams": STREAMS, "worker_count": 4}},
                "metrics": {
                    "request_totals": {"successful": COUNT, "errored": 1, "incomplete": 1, "total": COUNT + 2},
                    "requests_per_second": distribution(4.5),
                    "output_tokens_per_second": distribution(290.0),
                    "time_to_first_token_ms": distribution(1e3 * TTFT_S),
                    "inter_token_latency_ms": distribution(1e3 * (EVENTS - 1) * GAP_S / (TOKENS - 1)),
                    "request_latency": distribution(LATENCY_S),
                },
                "requests": {
                    "successful": [request(place) for place in range(keep)],
                    "errored": [bad] if keep else [],
                    "incomplete": [request(1) | {"request_id": "cut"}] if keep else [],
                },
            }
        ],
    }


def aiperf() -> list[dict[str, Any]]:
    """AIPerf's ``profile_export.jsonl``: a warm-up, the requests, one that failed, one that was cancelled."""

    def record(place: int, phase: str = "profiling") -> dict[str, Any]:
        start = round(1e9 * STARTS_S[place])
        return {
            "metadata": {
                "session_num": place,
                "x_request_id": f"r{place}",
                "turn_index": 0,
                "request_start_ns": start,
                "request_ack_ns": start + 1000,
                "request_end_ns": start + round(1e9 * LATENCY_S),
                "benchmark_phase": phase,
                "was_cancelled": False,
                "cancellation_time_ns": None,
            },
            "metrics": {
                "input_sequence_length": {"value": PROMPTS[place], "unit": "tokens"},
                "time_to_first_token": {"value": 1e3 * TTFT_S, "unit": "ms"},
                "request_latency": {"value": 1e3 * LATENCY_S, "unit": "ms"},
                "output_token_count": {"value": TOKENS, "unit": "tokens"},
                "output_sequence_length": {"value": TOKENS, "unit": "tokens"},
                "inter_chunk_latency": {"value": [1e3 * GAP_S] * (EVENTS - 1), "unit": "ms"},
                "inter_token_latency": {"value": 1e3 * (LATENCY_S - TTFT_S) / (TOKENS - 1), "unit": "ms"},
            },
            "error": None,
        }

    failed = record(0) | {
        "metrics": {"error_isl": {"value": 550, "unit": "tokens"}},
        "error": {"code": 500, "type": "HTTPError", "message": "Internal Server Error"},
    }
    cancelled = failed | {
        "metadata": record(0)["metadata"] | {"session_num": 41, "was_cancelled": True},
        "error": {"code": 499, "type": "RequestCancellationError", "message": "Request was cancelled"},
    }
    failed["metadata"] = record(0)["metadata"] | {"session_num": 40}
    return [record(0, "warmup"), *map(record, range(COUNT)), failed, cancelled]


def aiperf_summary() -> dict[str, Any]:
    """AIPerf's ``profile_export_aiperf.json``."""

    def stat(mean: float, unit: str) -> dict[str, Any]:
        return {"unit": unit, "avg": mean, "p50": mean, "p90": mean, "p95": mean, "p99": mean, "min": mean, "max": mean}

    return {
        "aiperf_version": "0.13.0",
        "schema_version": "1.4",
        "input_config": {
            "endpoint": {"model_names": ["org/model"], "api_key": "secret"},
            "loadgen": {"concurrency": STREAMS, "request_rate": None, "request_count": COUNT},
        },
        "request_count": {"unit": "requests", "avg": float(COUNT)},
        "error_request_count": {"unit": "requests", "avg": 2.0},
        "request_throughput": stat(4.5, "requests/sec"),
        "output_token_throughput": {"unit": "tokens/sec", "avg": 290.0},
        "time_to_first_token": stat(1e3 * TTFT_S, "ms"),
        "inter_token_latency": stat(1e3 * (LATENCY_S - TTFT_S) / (TOKENS - 1), "ms"),
        "request_latency": stat(1e3 * LATENCY_S, "ms"),
        "input_sequence_length": stat(float(np.mean(PROMPTS)), "tokens"),
        "output_sequence_length": stat(float(TOKENS), "tokens"),
        "was_cancelled": False,
    }


def llama_benchy() -> dict[str, Any]:
    """llama-benchy's JSON: a context filled, then generation at 1 and 4 streams."""

    def metric(values: list[float]) -> dict[str, Any]:
        return {"mean": float(np.mean(values)), "std": 0.0, "values": values}

    def bench(streams: int, *, context: bool = False) -> dict[str, Any]:
        return {
            "concurrency": streams,
            "context_size": 512 if context else 0,
            "prompt_size": 128,
            "response_size": TOKENS,
            "is_context_prefill_phase": context,
            "pp_throughput": metric([640.0] * 3),
            "tg_throughput": metric([100.0 * streams] * 3),
            "tg_req_throughput": metric([100.0] * 3 * streams),
            "ttfr": metric([1e3 * TTFT_S] * 3 * streams),
            "e2e_ttft": metric([1e3 * TTFT_S] * 3 * streams),
            "est_ppt": metric([190.0] * 3 * streams),
        }

    return {
        "version": "0.4.1",
        "timestamp": "2026-11-01T12:00:00Z",
        "latency_mode": "api",
        "latency_ms": 1.2,
        "model": "org/model",
        "prefix_caching_enabled": False,
        "max_concurrency": 4,
        "benchmarks": [bench(1, context=True), bench(1), bench(4)],
    }


def written(path: Path, *documents: Any) -> Path:
    """The documents in the file at ``path``, one a line; the path."""
    path.write_text("\n".join(json.dumps(each) for each in documents), "utf-8")
    return path
