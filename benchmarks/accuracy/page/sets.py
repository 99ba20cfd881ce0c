"""The reference sets of each result of record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

from benchmarks.accuracy.page.reference_set import ReferenceSet
from benchmarks.record import RESULTS

Record = Mapping[str, Any]
NOTHING, HELD_OUT = "nothing fitted", "held out"


def all_sets() -> list[ReferenceSet]:
    """Every reference set, in the order of the page."""
    found: list[ReferenceSet] = []
    for name, of in READERS.items():
        found += of(json.loads((RESULTS / f"{name}.json").read_text("utf-8")), f"python -m benchmarks.accuracy.{name}")
    return found


def _kv(record: Record, command: str) -> Iterator[ReferenceSet]:
    found = record["figures"]["all"]
    rows = [abs(each["error"]) for each in record["rows"]]
    yield ReferenceSet(
        "engines' start-up logs", "KV tokens of the pool", "constants from some of the logs", found["n"],
        found["median_error"], found["p90_error"], max(rows), command, 0.05, 0.15,
    )  # fmt: skip


def _steps(record: Record, command: str) -> Iterator[ReferenceSet]:
    for phase, bar in (("decode", 0.05), ("prefill", None), ("mixed", None)):
        found = record["phases"][phase]["overall"]
        yield ReferenceSet(
            "kernel tables of AIConfigurator, 4 accelerators, 3 engines", f"{phase} step", "held out: another model",
            found["steps"], found["median"], found["p90"], None, command, bar,
        )  # fmt: skip


def _perf(record: Record, command: str) -> Iterator[ReferenceSet]:
    for phase, found in record["phases"].items():
        bar = record["bar"].get(phase)
        yield _grouped("published rates", phase, found, command, bar)


def _kernels(record: Record, command: str) -> Iterator[ReferenceSet]:
    for name, found in record["groups"].items():
        kind, accelerator, size = name.split(" | ")
        if (accelerator, size) == ("all", "all"):
            fitted = kind.startswith("send")
            found_set = _grouped("measured kernels, A40, A100, H100", kind, found, command, None)
            yield found_set._replace(standing="partly the fit itself") if fitted else found_set


def _grouped(reference: str, what: str, found: Record, command: str, bar: float | None) -> ReferenceSet:
    return ReferenceSet(
        reference, what, NOTHING, found["n"], found["median"], found["p90"], found["worst"], command, bar
    )


def _runs(record: Record, command: str) -> Iterator[ReferenceSet]:
    names = {"rtx4090_llama31_8b_tp1": "vLLM 0.19, RTX 4090", "rtxpro6000_qwen3_32b_tp2": "vLLM 0.19, 2 x RTX PRO 6000"}
    whats = {
        "e2e": "end to end, by request",
        "tpot": "TPOT, by request",
        "ttft_p50": "TTFT p50",
        "throughput": "tokens/s",
    }
    for run, rows in record["runs"].items():
        for row in rows:
            fitted = row["coefficients"] != "shipped"
            for key, bar in record["bars"]["fitted" if fitted else "shipped"].items():
                what = f"{whats[key]} ({row['pool']} pool)"
                standing = "held out: second half" if fitted else NOTHING
                yield ReferenceSet(names[run], what, standing, 300, abs(row["errors"][key]), None, None, command, bar)


def _servers(record: Record, command: str) -> Iterator[ReferenceSet]:
    for standing, found in record["sets"].items():
        of = found["overall"]
        for what in ("tpot", "ttft"):
            yield ReferenceSet(
                "servers in a closed loop (InferenceX and others)", f"mean {what.upper()}", standing, of["points"],
                of[f"{what}_median"], of[f"{what}_p90"], None, command, record["bar"][f"{what}_median"],
            )  # fmt: skip


def _speculation(record: Record, command: str) -> Iterator[ReferenceSet]:
    rows = [each for each in record["published"] if not each["fitted_on_others"]]
    errors = sorted(each["median_error"] for each in rows)
    counted = sum(each["rows"] for each in rows)
    worst = max(each["worst_error"] for each in rows)
    what = "speed-up by speculation (median over sources)"
    yield ReferenceSet("published speed-ups", what, NOTHING, counted, median(errors), None, worst, command)
    for each in record["published"]:
        if each["fitted_on_others"]:
            standing = "the fit itself" if "the fit" in each["judged"] else f"{HELD_OUT}: host time of other rows"
            yield ReferenceSet(
                "published speed-ups", f"speed-up, {each['judged']}", standing,
                each["rows"], each["median_error"], each["p90_error"], each["worst_error"], command,
            )  # fmt: skip


def _prefix(record: Record, command: str) -> Iterator[ReferenceSet]:
    rows = [each for each in record["hit_rates"] if each["simulated"] is not None]
    errors = sorted(abs(each["simulated"] / each["published"] - 1) for each in rows)
    what = "prefix hit rate by pool size, simulated"
    yield ReferenceSet("Mooncake trace", what, NOTHING, len(rows), median(errors), None, errors[-1], command)


def _pipelines(record: Record, command: str) -> Iterator[ReferenceSet]:
    """By the kernels alone; of servers in stages, whose host is not hidden, with a server's overheads too."""
    for server, found in record["servers"].items():
        for kind in ("calibrated", "served")[: 1 if server.endswith("PP1") else 2]:
            what = f"tokens/s, {server}" + (", served" if kind == "served" else "")
            yield _grouped("TensorRT-LLM 1.0, all requests at once", what, found[kind], command, None)


def _calibration(record: Record, command: str) -> Iterator[ReferenceSet]:
    for server, found in record["servers"].items():
        metrics = [each for row in found["rows"] for each in row["metrics"]]
        errors = sorted(abs(each["ratio"] - 1) for each in metrics if each["ratio"])
        p90 = errors[int(0.9 * (len(errors) - 1))]
        yield ReferenceSet(
            "own runs, 2 shared CPU cores", f"{server}: TTFT, TPOT, tokens/s of further loads",
            f"{HELD_OUT}: other loads", len(errors), median(errors), p90, errors[-1], command,
        )  # fmt: skip


READERS: Mapping[str, Callable[[Record, str], Iterator[ReferenceSet]]] = {
    "kv_capacity": _kv,
    "step_times": _steps,
    "kernel_bench": _kernels,
    "measured_perf": _perf,
    "vllm_runs": _runs,
    "e2e_measured": _servers,
    "pipeline_stages": _pipelines,
    "speculation_in_the_loop": _speculation,
    "prefix_in_the_loop": _prefix,
    "calibration": _calibration,
}
