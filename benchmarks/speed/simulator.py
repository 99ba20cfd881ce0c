"""How many requests a second the event core simulates, on the Azure 2023 conversation trace tiled, on one core.

Each run is a process of its own, so that its peak memory is its own. Two policies: ``reserved`` (whole prompts in steps
of their own, KV reserved) and ``everything``: the vLLM preset with all that is on by default (chunked prefill, blocks
taken chunk by chunk, preemption, prefix cache, async scheduling). Llama 3.1 8B
on one H100 SXM by the shipped calibration; the trace is sped up to the given share of what the server can carry.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

from benchmarks.record import save, table

SIZES = (10_000, 100_000, 1_000_000)
BARS = {"reserved": 100_000, "everything": 30_000}
RATE_PER_S = {"reserved": 20.0, "everything": 15.0}  # both near four fifths of what their pools carry


def run_one(mode: str, requests: int) -> dict[str, object]:
    """Simulate ``requests`` requests; the figures of this process."""
    from servewise.batching.policies import Continuous, Vllm
    from servewise.deployment.capacity import KvCapacity, kv_capacity
    from servewise.deployment.deployment import Deployment
    from servewise.hardware.catalogue import load_accelerator
    from servewise.modelspec.load import load_model
    from servewise.precision import parse_precision
    from servewise.simulate.run import simulate
    from servewise.steptime.api import estimator_for
    from servewise.workload.load import load_workload
    from servewise.workload.traces.trace import Trace

    bf16 = parse_precision("bf16")
    deployment = Deployment(
        model=load_model("llama-3.1-8b"),
        accelerator=load_accelerator("h100-sxm"),
        kv=bf16,
        activations=bf16,
        engine="vllm",
    )
    capacity = kv_capacity(deployment)
    assert isinstance(capacity, KvCapacity)
    workload = load_workload("azure-conv", rate_per_s=RATE_PER_S[mode], requests=requests)
    assert isinstance(workload, Trace)
    everything = mode == "everything"
    policy = Vllm(256, 8192) if everything else Continuous(256, 8192, chunked_prefill=False, reserve_output=True)
    blocks = capacity.blocks // 4 if everything else capacity.blocks
    estimator = estimator_for(deployment)
    started = time.perf_counter()
    run = simulate(
        workload.requests(0),
        policy,
        estimator,
        blocks=blocks,
        block_tokens=capacity.block_tokens,
        hash_block_tokens=16,
    )
    seconds = time.perf_counter() - started
    held = sum(each * count for each, count in zip(run.steps.running, run.steps.seconds, strict=True))
    return {
        "mode": mode,
        "requests": requests,
        "requests_per_s": requests / seconds,
        "seconds": seconds,
        "events_per_request": len(run.steps) / requests,
        "mean_running": held / sum(run.steps.seconds),
        "preemptions": sum(run.requests.preemptions),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    """Measure every size and mode, print the table, write the record."""
    if len(sys.argv) == 3:
        print(json.dumps(run_one(sys.argv[1], int(sys.argv[2]))))
        return
    rows = [_in_a_process(mode, size) for mode in BARS for size in SIZES]
    header = ("mode", "requests", "requests/s", "bar", "seconds", "events/request", "running", "preempted", "peak GB")
    table(header, [_row(each) for each in rows])
    save("simulator_speed", {"bars_requests_per_s": BARS, "rows": rows})


def _in_a_process(mode: str, size: int) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.speed.simulator", mode, str(size)]
    found: dict[str, object] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def _row(each: dict[str, object]) -> list[object]:
    memory = each["peak_memory_bytes"]
    assert isinstance(memory, int)
    return [
        each["mode"],
        each["requests"],
        each["requests_per_s"],
        BARS[str(each["mode"])],
        each["seconds"],
        each["events_per_request"],
        each["mean_running"],
        each["preemptions"],
        memory / 1e9,
    ]


if __name__ == "__main__":
    main()
