"""What it costs to do a sweep on Ray instead of local processes, both on this machine's two cores.

``start_s``: until the first result of a task that does nothing (an interpreter each; for Ray a cluster too, once).
``task_s``: for each of ``TASKS`` more of them. ``plan_s``: a plan of ``CANDIDATES`` candidates on ``REQUESTS``
requests, start included; every executor must give the same document. Run it on an idle machine: ``load`` is the
machine's load average before each row.
"""

from __future__ import annotations

import operator
import os
import time

from benchmarks.record import save, table
from servewise.executing.executor import executor_named
from servewise.executing.workers import Workers

TASKS = 2_000
REQUESTS = 5_000
CANDIDATES = 16
EXECUTORS = (("local", 1), ("local", 2), ("ray", 2))


def measured(name: str, processes: int) -> tuple[dict[str, float | int | str], str]:
    """The row of an executor, and its plan's document."""
    load, began = os.getloadavg()[0], time.perf_counter()
    with Workers(1, executor_named(name, processes)) as workers:
        list(workers.each(operator.mul, range(processes)))
        started = time.perf_counter()
        assert list(workers.each(operator.mul, range(TASKS))) == list(range(TASKS))
        ended = time.perf_counter()
    document, plan_s = planned(name, processes)
    row: dict[str, float | int | str] = {
        "executor": name,
        "processes": processes,
        "start_s": round(started - began, 2),
        "task_s": round((ended - started) / TASKS, 6),
        "plan_s": round(plan_s, 2),
        "load": round(load, 2),
    }
    return row, document


def planned(name: str, processes: int) -> tuple[str, float]:
    """A plan's document, and how long it took [s]."""
    from servewise.ask.plan import plan

    before = time.perf_counter()
    answer = plan(
        "llama-3.1-8b",
        ("l40s", "a100-80gb", "h100-sxm", "h200"),
        workload="azure-conv",
        requests=REQUESTS,
        slo="ttft_p95<=1s, tpot_p95<=50ms",
        counts=(1, 2),
        weights=("bf16", "fp8"),
        processes=processes,
        executor=name,
    )
    return answer.dumps(), time.perf_counter() - before


def main() -> None:
    """Every executor; print and save the table."""
    rows, documents = zip(*(measured(*each) for each in EXECUTORS), strict=True)
    table(list(rows[0]), [list(each.values()) for each in rows])
    assert len(set(documents)) == 1, "the plan depends on who does it"
    save("executors_speed", {"tasks": TASKS, "candidates": CANDIDATES, "requests": REQUESTS, "rows": list(rows)})


if __name__ == "__main__":
    main()
