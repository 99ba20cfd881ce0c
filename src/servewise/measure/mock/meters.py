"""What ``/metrics`` tells, under the names that vLLM uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Meters:
    """Gauges and counters; ``kv_used`` of ``kv_tokens`` are held by what runs."""

    kv_tokens: int
    running: int = 0
    waiting: int = 0
    kv_used: int = 0
    queried: int = 0
    hit: int = 0
    prompt: int = 0
    generated: int = 0
    finished: int = 0

    def page(self, model: str) -> bytes:
        """The page in Prometheus' text format, version 0.0.4."""
        rows = (
            ("num_requests_running", "gauge", self.running),
            ("num_requests_waiting", "gauge", self.waiting),
            ("kv_cache_usage_perc", "gauge", self.kv_used / self.kv_tokens),
            ("num_preemptions_total", "counter", 0),
            ("prefix_cache_queries_total", "counter", self.queried),
            ("prefix_cache_hits_total", "counter", self.hit),
            ("prompt_tokens_total", "counter", self.prompt),
            ("generation_tokens_total", "counter", self.generated),
            ("request_success_total", "counter", self.finished),
        )
        return "".join(_lines(name, kind, value, model) for name, kind, value in rows).encode()


def _lines(name: str, kind: str, value: float, model: str) -> str:
    family = f"vllm:{name.removesuffix('_total')}"
    return (
        f"# HELP {family} Of the stand-in server.\n# TYPE {family} {kind}\n"
        f'vllm:{name}{{engine="0",model_name="{model}"}} {float(value)}\n'
    )
