"""What ``/metrics`` tells, in Prometheus' text format, under the names and with the buckets of vLLM.

The engine's thread writes, the event loop reads. Source of names and buckets: vllm/v1/metrics/loggers.py (v1 engine, at
commit 005a810). What vLLM has no name for is told under ``servewise:``.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from servewise.engine.running.generation import Generation
from servewise.records.columns import CANCELLED, COMPLETED

FIRST_TOKEN_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
BETWEEN_TOKENS_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
ENDS = ("stop", "length", "abort", "error")


class Histogram:
    """Observations counted by upper bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count ``value``."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """Its samples: cumulative buckets, sum and count."""
        totals = list(accumulate(self.counts))
        for bound, total in zip((*self.bounds, "+Inf"), totals, strict=True):
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self.sum}"
        yield f"{name}_count{{{labels}}} {totals[-1]}"


class Meters:
    """The server's counters, gauges and histograms. ``prefix_cache``: whether prompts are looked up in one.

    ``blocks``, ``block_tokens``: the pool's, as vLLM tells them in ``cache_config_info``.
    """

    def __init__(self, model: str, *, prefix_cache: bool, blocks: int = 0, block_tokens: int = 0) -> None:
        quoted = model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        self._pool = f'block_size="{block_tokens}",num_gpu_blocks="{blocks}",engine="0"'
        self._labels = f'model_name="{quoted}",engine="0"'
        self._prefix_cache = prefix_cache
        self._lock = threading.Lock()
        self._running = self._waiting = 0
        self._usage = 0.0
        self._preemptions = self._prompt_tokens = self._generated = self._queries = self._hits = 0
        self._ends = dict.fromkeys(ENDS, 0)
        self._first_token, self._between = Histogram(FIRST_TOKEN_S), Histogram(BETWEEN_TOKENS_S)
        self._per_token = Histogram(BETWEEN_TOKENS_S)
        self._whole, self._queued, self._prefill, self._decode, self._inference = (
            Histogram(REQUEST_S) for _ in range(5)
        )
        self._prompts, self._outputs, self._step_tokens = (Histogram(TOKENS) for _ in range(3))

    def state(self, running: int, waiting: int, usage: float) -> None:
        """How many requests run and wait now, and the share of KV blocks in use."""
        with self._lock:
            self._running, self._waiting, self._usage = running, waiting, usage

    def stepped(self, preempted: int, tokens: int = 0) -> None:
        """A step ran over ``tokens``, prompts' and new ones, that preempted so many requests."""
        with self._lock:
            self._preemptions += preempted
            self._step_tokens.observe(tokens)

    def token(self, generation: Generation) -> None:
        """A request got a token."""
        times = generation.token_times
        with self._lock:
            self._generated += 1
            if len(times) > 1:
                self._between.observe(times[-1] - times[-2])
                return
            self._first_token.observe(times[0] - generation.arrival_s)
            self._queued.observe(generation.admitted_s - generation.arrival_s)
            self._prompt_tokens += generation.prompt_tokens
            if self._prefix_cache:
                self._queries += generation.prompt_tokens
                self._hits += generation.first_cached_tokens or 0

    def ended(self, generation: Generation) -> None:
        """A request is over."""
        with self._lock:
            self._ends[_end_of(generation)] += 1
            if generation.status == COMPLETED:
                self._whole.observe(generation.end_s - generation.arrival_s)
                self._timed(generation)

    def _timed(self, generation: Generation) -> None:
        times, admitted_s = generation.token_times, generation.admitted_s
        self._prompts.observe(generation.prompt_tokens)
        self._outputs.observe(len(times))
        self._prefill.observe(times[0] - admitted_s)
        self._decode.observe(times[-1] - times[0])
        self._inference.observe(times[-1] - admitted_s)
        if len(times) > 1:
            self._per_token.observe((times[-1] - times[0]) / (len(times) - 1))

    def edge(self, inside: int, turned_away: Mapping[str, int], connections: Mapping[str, int]) -> str:
        """What happened before the engine: who is inside, who was turned away, what became of connections."""
        lines = [*_head("servewise:choices_inside", "gauge", "Choices that run or wait.")]
        lines.append(f"servewise:choices_inside{{{self._labels}}} {inside}")
        for name, help_text, counts in (
            ("turned_away_total", "Requests refused with 429 or 503, by why.", turned_away),
            ("connections_ended_total", "Connections that the server ended early, by why.", connections),
        ):
            lines += _head(f"servewise:{name}", "counter", help_text)
            lines += [f'servewise:{name}{{{self._labels},reason="{why}"}} {count}' for why, count in counts.items()]
        return "".join(f"{line}\n" for line in lines)

    def text(self) -> str:
        """The page."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        labels = self._labels
        for name, kind, help_text, value in (
            ("num_requests_running", "gauge", "Requests that hold a row and blocks.", self._running),
            ("num_requests_waiting", "gauge", "Requests that wait for admission.", self._waiting),
            ("kv_cache_usage_perc", "gauge", "KV blocks in use, 1 is all.", self._usage),
            ("num_preemptions_total", "counter", "Preemptions by recompute.", self._preemptions),
            ("prompt_tokens_total", "counter", "Prompt tokens of requests that got a token.", self._prompt_tokens),
            ("generation_tokens_total", "counter", "Tokens generated.", self._generated),
            ("prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.", self._queries),
            ("prefix_cache_hits_total", "counter", "Prompt tokens found there.", self._hits),
        ):
            yield from _head(f"vllm:{name}", kind, help_text)
            yield f"vllm:{name}{{{labels}}} {value}"
        yield from _head("vllm:cache_config_info", "gauge", "The KV pool.")
        yield f"vllm:cache_config_info{{{self._pool}}} 1"
        yield from _head("vllm:request_success_total", "counter", "Requests that ended, by how.")
        for reason, count in self._ends.items():
            yield f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {count}'
        for name, help_text, histogram in (
            ("time_to_first_token_seconds", "From arrival to the first token.", self._first_token),
            ("inter_token_latency_seconds", "Between two tokens of a request.", self._between),
            ("time_per_output_token_seconds", "The same, under its older name.", self._between),
            (
                "request_time_per_output_token_seconds",
                "A request's mean time a token after its first.",
                self._per_token,
            ),
            ("e2e_request_latency_seconds", "From arrival to the end.", self._whole),
            ("request_queue_time_seconds", "From arrival to admission.", self._queued),
            ("request_prefill_time_seconds", "From admission to the first token.", self._prefill),
            ("request_decode_time_seconds", "From the first token to the last.", self._decode),
            ("request_inference_time_seconds", "From admission to the last token.", self._inference),
            ("request_prompt_tokens", "Tokens of a prompt.", self._prompts),
            ("request_generation_tokens", "Tokens of a reply.", self._outputs),
            ("iteration_tokens_total", "Tokens of a step.", self._step_tokens),
        ):
            yield from _head(f"vllm:{name}", "histogram", help_text)
            yield from histogram.lines(f"vllm:{name}", labels)


def _head(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _end_of(generation: Generation) -> str:
    if generation.status == COMPLETED:
        return "stop" if generation.finish_reason == "stop" else "length"
    return "abort" if generation.status == CANCELLED else "error"
