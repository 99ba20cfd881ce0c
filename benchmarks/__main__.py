"""Every benchmark in turn, each its own process: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys

NAMES = (
    "accuracy.step_times",
    "accuracy.kv_capacity",
    "accuracy.measured_perf",
    "accuracy.kernel_bench",
    "accuracy.layer_products",
    "accuracy.study_lengths",
    "accuracy.study_window",
    "accuracy.study_quantisation",
    "accuracy.prefix_in_the_loop",
    "accuracy.speculation_in_the_loop",
    "accuracy.vllm_runs",
    "accuracy.e2e_measured",
    "accuracy.pipeline_stages",
    "accuracy.published_effects",
    "speed.commands",
    "speed.simulator",
    "speed.plan",
    "speed.executors",
    "speed.client",
)


def main() -> int:
    """Run each; the exit code is 1 when one of them failed."""
    failed = []
    for name in NAMES:
        print(f"\n== benchmarks.{name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
