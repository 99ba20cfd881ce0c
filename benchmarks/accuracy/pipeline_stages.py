"""One to eight stages: tokens/s that TensorRT-LLM reports, and what the simulated server makes of them.

    python -m benchmarks.accuracy.pipeline_stages

NVIDIA/TensorRT-LLM, docs/source/performance/perf-overview.md, 00f3768 (release 1.0): all requests at once, random
tokens, equal lengths (benchmarks/data/trtllm_throughput.csv). Dense models: Llama 3.3 70B in NVFP4 over 1, 2, 4 and 8
stages of RTX PRO 6000 Server, 405B over eight, and the page's servers without stages beside them, which tell the
estimator of a step from the pipeline. Limits are those that the page's command derives (``trtllm_bench``), the
scheduler is the preset's. Nothing was fitted to any of them.

``calibrated`` is the kernels alone, as the overlap scheduler leaves them; ``served`` adds what was fitted of a server
of TensorRT-LLM on an H100: 32 us a sequence, 0.9 ms a layer of a step with prompts. Without stages the engine hides
that; over stages it does not (``py_executor.py``, 1.0: ``event_loop = _executor_loop_pp``, whose ranks wait for their
stage before they go on, and walk all requests of the server for each batch).
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import median, quantiles

from benchmarks.accuracy.trtllm_bench import KV_SHARE, REQUESTS, limits_of
from benchmarks.record import save, table
from servewise.ask.deploying import deploy
from servewise.batching.policies import TrtLlm
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.deployment.deployment import Deployment
from servewise.simulate.run import simulate
from servewise.steptime.api import estimator_for
from servewise.workload.request import Request

DATA = Path(__file__).parents[1] / "data" / "trtllm_throughput.csv"
KINDS = ("calibrated", "served")


@dataclass(frozen=True)
class Point:
    """One published figure: a deployment, tokens in and out of each request, tokens/s out of all of them."""

    model: str
    accelerator: str
    weights: str
    tp: int
    pp: int
    prompt: int
    output: int
    tokens_per_s: float

    @property
    def server(self) -> str:
        """E.g. ``llama-3.3-70b nvfp4, rtx-pro-6000-server TP1 PP4``."""
        return f"{self.model} {self.weights}, {self.accelerator} TP{self.tp} PP{self.pp}"

    @cached_property
    def deployment(self) -> Deployment:
        """The server, with the limits that its command derives."""
        limits = limits_of(self._deployed(), self.prompt, self.output)
        return self._deployed(
            max_sequences=limits.max_batch_size,
            max_batched_tokens=limits.max_num_tokens,
            max_context=self.prompt + self.output,
        )

    def _deployed(self, **limits: int) -> Deployment:
        return deploy(
            self.model,
            self.accelerator,
            tp=self.tp,
            pp=self.pp,
            weights=self.weights,
            kv="fp8",
            activations=self.weights,
            engine="trtllm",
            memory_utilization=KV_SHARE,
            max_sequences=limits.get("max_sequences"),
            max_batched_tokens=limits.get("max_batched_tokens"),
            max_context=limits.get("max_context"),
        )

    def simulated(self, kind: str) -> float:
        """Tokens/s out of the simulated server, by that estimator."""
        where = self.deployment
        pool, limits = kv_capacity(where), limits_of(where, self.prompt, self.output)
        assert isinstance(pool, KvCapacity)
        count = REQUESTS[self.prompt, self.output]
        run = simulate(
            [Request(serial, 0.0, self.prompt, self.output) for serial in range(count)],
            TrtLlm(limits.max_batch_size, limits.max_num_tokens, pipeline_parallel_size=self.pp),
            estimator_for(where, kind),
            blocks=pool.blocks,
            block_tokens=pool.block_tokens,
            deployment=where,
        )
        return count * self.output / max(run.requests.end_s)


def points() -> list[Point]:
    """All figures of the file."""
    with DATA.open(newline="") as lines:
        return [
            Point(*(row[name] for name in ("model", "accelerator", "weights")), *_numbers(row))  # type: ignore[arg-type]
            for row in csv.DictReader(lines)
        ]


def _numbers(row: Mapping[str, str]) -> Sequence[float]:
    counts = [int(row[name]) for name in ("tp", "pp", "prompt", "output")]
    return *counts, float(row["tokens_per_s"])


def judged(of: Iterable[Point]) -> list[dict[str, object]]:
    """Each figure beside what is simulated, by both estimators."""
    return [asdict(each) | {kind: each.simulated(kind) for kind in KINDS} for each in of]


def summary(ratios: Sequence[float]) -> dict[str, float]:
    """Of simulated / measured: count, absolute errors, and their middle."""
    errors = sorted(abs(each - 1) for each in ratios)
    p90 = quantiles(errors, n=10, method="inclusive")[-1]
    return {"n": len(errors), "median": median(errors), "p90": p90, "worst": errors[-1], "ratio": median(ratios)}


def grouped(of: Sequence[Point], rows: Sequence[Mapping[str, object]]) -> dict[str, dict[str, dict[str, float]]]:
    """The summaries of each server, by estimator."""
    groups: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for each, row in zip(of, rows, strict=True):
        groups[each.server].append(row)
    return {server: {kind: summary(ratios(found, kind)) for kind in KINDS} for server, found in groups.items()}


def ratios(rows: Sequence[Mapping[str, object]], kind: str) -> list[float]:
    """Simulated / measured."""
    return [float(row[kind]) / float(row["tokens_per_s"]) for row in rows]  # type: ignore[arg-type]


def main() -> None:
    """Print the tables and write the result."""
    of = points()
    rows = judged(of)
    groups = grouped(of, rows)
    table(
        ("server", "in", "out", "measured", *KINDS),
        [(each.server, each.prompt, each.output, each.tokens_per_s, *(row[kind] for kind in KINDS))
         for each, row in zip(of, rows, strict=True)],
    )  # fmt: skip
    print()
    names = ("median", "worst", "ratio")
    table(
        ("server", "n", *(f"{kind} {name}" for kind in KINDS for name in names)),
        [(server, found[KINDS[0]]["n"], *(found[kind][name] for kind in KINDS for name in names))
         for server, found in groups.items()],
    )  # fmt: skip
    save("pipeline_stages", {"servers": groups, "rows": rows})


if __name__ == "__main__":
    main()
