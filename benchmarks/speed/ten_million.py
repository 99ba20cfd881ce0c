"""Ten million requests through the public command: memory of all its processes, time, and that the answers are one.

    python -m benchmarks.speed.ten_million [REQUESTS]

A trace of that length (``big_trace``) is written beside, then ``servewise fleet`` runs it through two replicas behind a
round-robin router, by one process and by two, as a user would. Memory is the sum of every process's own peak (VmHWM as
Linux counts it, looked at ten times a second), which is above what they ever had at once. Seconds are of the wall and
of all their CPUs: on a machine with other work the wall tells little. The record is kept for ten million alone.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.record import save, table
from benchmarks.speed import big_trace

REQUESTS, BAR_BYTES, REPLICAS, RATE_PER_S, LOOK_S = 10_000_000, 1_500_000_000, 2, 30.0, 0.1
ASKED = ("fleet", "llama-3.1-8b", "--accelerator", "h100-sxm", "--replicas", str(REPLICAS), "--estimator", "ideal",
         "--slo", "ttft_p95<=1s, tpot_p95<=50ms", "--json")  # fmt: skip


def main() -> None:
    """Run it, print the table, keep the record."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS
    os.nice(10)
    with tempfile.TemporaryDirectory(prefix="ten-million-") as folder:
        trace = Path(folder) / "big.parquet"
        began = time.monotonic()
        big_trace.write(trace, requests, RATE_PER_S)
        print(f"the trace: {trace.stat().st_size / 1e6:,.0f} MB, made in {time.monotonic() - began:,.0f} s", flush=True)
        runs = [_run(trace, requests, processes) for processes in (1, 2)]
        rows = [row for row, _ in runs]
        same = len({answer for _, answer in runs}) == 1
    header = ("processes", "wall s", "CPU s", "requests/s of wall", "requests per CPU s", "peak MB in sum", "bar MB")
    table(header, [_shown(row) for row in rows])
    print(f"answers equal to the last digit: {same}")
    if requests == REQUESTS:
        save("ten_million", {"requests": requests, "bar_bytes": BAR_BYTES, "answers_equal": same, "rows": rows})


def _run(trace: Path, requests: int, processes: int) -> tuple[dict[str, Any], str]:
    """The figures of one run of the command, and its answer."""
    command = [sys.executable, "-m", "servewise", *ASKED, "--workload", str(trace), "--processes", str(processes)]
    before, began = _cpu_s(), time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        running = subprocess.Popen(command, stdout=out)
        peaks = _peaks(running)
        if running.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {running.returncode}")
        out.seek(0)
        answer = out.read()
    wall_s, cpu_s = time.monotonic() - began, _cpu_s() - before
    row: dict[str, Any] = {
        "processes": processes,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "requests_per_wall_s": requests / wall_s,
        "requests_per_cpu_s": requests / cpu_s,
        "peak_bytes": sum(peaks.values()),
        "peaks_bytes": sorted(peaks.values(), reverse=True),
    }
    print(json.dumps(row), flush=True)
    return row, answer


def _peaks(running: subprocess.Popen[bytes]) -> dict[int, int]:
    """The most memory that each process of the family ever had [bytes]."""
    peaks: dict[int, int] = {}
    while running.poll() is None:
        for pid in _family(running.pid):
            peaks[pid] = max(peaks.get(pid, 0), _peak_bytes(pid))
        time.sleep(LOOK_S)
    return peaks


def _family(pid: int) -> list[int]:
    try:
        children = [int(each) for task in Path(f"/proc/{pid}/task").iterdir() for each in _children(task)]
    except OSError:
        return []
    return [pid, *(each for child in children for each in _family(child))]


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except OSError:
        return []


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shown(row: dict[str, Any]) -> list[object]:
    names = ("processes", "wall_s", "cpu_s", "requests_per_wall_s", "requests_per_cpu_s")
    return [*(row[name] for name in names), row["peak_bytes"] / 1e6, BAR_BYTES / 1e6]


if __name__ == "__main__":
    main()
