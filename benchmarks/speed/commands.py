"""How long the quick commands take as whole processes: `python -m benchmarks.speed.commands`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.record import save, table

RUNS = 9
COMMANDS = {
    "--help": (0.2, ["--help"]),
    "size": (0.5, ["size", "llama-2-13b", "--accelerator", "a100-80gb", "--context", "2048"]),
    "steptime": (0.5, ["steptime", "llama-2-13b", "--accelerator", "a100-80gb", "--context", "2048", "--json"]),
}


def seconds(words: list[str]) -> float:
    """Wall time of one process."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "servewise", *words], check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Measure each command, print the table, write the record."""
    rows = []
    for name, (bar, words) in COMMANDS.items():
        seconds(words)
        times = [seconds(words) for _ in range(RUNS)]
        rows.append({"command": name, "bar_s": bar, "median_s": statistics.median(times), "max_s": max(times)})
    table(("command", "bar s", "median s", "max s"), [list(row.values()) for row in rows])
    save("commands_speed", {"runs": RUNS, "rows": rows})


if __name__ == "__main__":
    main()
