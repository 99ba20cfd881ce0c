"""How a plan over 2,000 candidates goes: what bounds spare, by reason, and what that is worth.

Candidates: accelerators x counts x weights x KV precisions x max_num_seqs x max_num_batched_tokens x chunked prefill,
of Llama 3.1 8B on 5,000 requests of the Azure 2023 conversation trace. Run by one process and by two, which must give
the same document, each in a process of its own, for its peak memory; then a smaller grid with and without pruning,
which must give the same but for the counts. ``load`` is the machine's load average before each run: more than its
cores means that others were at work.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from multiprocessing import get_context
from typing import Any

from benchmarks.record import save, table

SLO = "ttft_p95<=1s, tpot_p95<=50ms"
LARGE: dict[str, Any] = {
    "accelerators": ["l4", "a10", "l40s", "a100-40gb", "a100-80gb", "h100-sxm", "h200"],
    "counts": [1, 2, 4],
    "weights": ["bf16", "fp8"],
    "kv": ["bf16", "fp8"],
    "slots": [128, 256, 512],
    "max_batched_tokens": [1024, 2048, 4096, 8192],
    "chunked": [True, False],
    "requests": 5_000,
}
SMALL: dict[str, Any] = {
    **LARGE,
    "accelerators": ["l4", "l40s", "a100-80gb", "h100-sxm"],
    "counts": [1, 2],
    "kv": ["bf16"],
    "slots": [128, 256],
    "max_batched_tokens": [2048, 8192],
    "requests": 600,
}


def planned(options: dict[str, Any], processes: int, *, prune: bool) -> tuple[dict[str, Any], str]:
    """The plan's figures, and its document without the counts of what was simulated."""
    from servewise.ask.plan import plan
    from servewise.workload.load import load_workload

    load, began = os.getloadavg()[0], time.perf_counter()
    rest = {name: value for name, value in options.items() if name not in ("accelerators", "requests")}
    workload = load_workload("azure-conv", requests=options["requests"])
    answer = plan(
        "llama-3.1-8b", options["accelerators"], workload=workload, slo=SLO, processes=processes, prune=prune, **rest
    )
    document = json.loads(answer.dumps())
    pruning, simulations = document["result"].pop("pruning"), document["result"].pop("simulations")
    row = {
        "processes": processes,
        "prune": prune,
        "candidates": document["result"]["candidates"],
        "requests": document["result"]["requests"],
        "pruned": pruning["pruned"],
        **pruning["by_reason"],
        "ended_early": pruning["ended_early"],
        "weighed": pruning["weighed"],
        "simulations": simulations,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_s": round(_used("cpu"), 1),
        "peak_mb": round(_used("memory")),
        "load": round(load, 1),
        "winner": document["result"]["recommendation"]["deployment"]["title"],
    }
    return row, json.dumps(document, sort_keys=True)


def _used(what: str) -> float:
    """CPU seconds of this process and those that it waited for, or the largest peak of one of them [MB]."""
    used = [resource.getrusage(kind) for kind in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    if what == "cpu":
        return sum(each.ru_utime + each.ru_stime for each in used)
    return max(each.ru_maxrss for each in used) * (1 if sys.platform == "darwin" else 1024) / 1e6


def apart(options: dict[str, Any], processes: int, *, prune: bool) -> tuple[dict[str, Any], str]:
    """``planned`` in a process of its own."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_send, args=(theirs, options, processes, prune))
    process.start()
    found: tuple[dict[str, Any], str] = ours.recv()
    process.join()
    return found


def _send(to: Any, options: dict[str, Any], processes: int, prune: bool) -> None:
    to.send(planned(options, processes, prune=prune))


def main() -> None:
    """The large grid by two processes and by one; the small one with and without pruning."""
    two, document = apart(LARGE, 2, prune=True)
    print(json.dumps(two), flush=True)
    one, same = apart(LARGE, 1, prune=True)
    assert document == same, "the plan depends on the number of processes"
    assert [one[name] for name in ("pruned", "simulations")] == [two[name] for name in ("pruned", "simulations")]
    pruned, with_it = apart(SMALL, 2, prune=True)
    whole, without = apart(SMALL, 2, prune=False)
    assert with_it == without, "pruning changes the answer"
    rows = [two, one, pruned, whole]
    table([name for name in two if name != "winner"], [[row[name] for name in row if name != "winner"] for row in rows])
    print(f"winner: {two['winner']}")
    print(f"the small grid takes {whole['cpu_s'] / pruned['cpu_s']:.1f} times the CPU time without pruning")
    save("plan_large", {"slo": SLO, "large": LARGE, "small": SMALL, "rows": rows})


if __name__ == "__main__":
    main()
