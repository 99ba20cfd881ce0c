"""Single kernels timed by others beside our time of that kernel: python -m benchmarks.accuracy.kernel_bench.

None was in the fit of the kernels' coefficients, save as stated: the A40's share of its peak in large products, the
links' rates and latencies (sends on H100 and A100 nodes), and a routed layer's own time (mixture kernels of one token).
Writes benchmarks/results/kernel_bench.json.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import median, quantiles
from typing import Any

from benchmarks.accuracy.kernel_bench.attention import judge_attention
from benchmarks.accuracy.kernel_bench.experts import judge_experts
from benchmarks.accuracy.kernel_bench.messages import judge_messages, left_out
from benchmarks.accuracy.kernel_bench.products import judge_products, judge_small
from benchmarks.accuracy.kernel_bench.rows import Judged, Kernel, kernels
from benchmarks.record import save, table

NAMES = ("n", "median", "p90", "worst", "measured_over_predicted")


def judged(rows: Sequence[Kernel]) -> Iterator[Judged]:
    """Every kernel that has a prediction."""
    yield from judge_products(rows)
    yield from judge_small(rows)
    yield from judge_attention(rows)
    yield from judge_experts()
    yield from judge_messages(rows)


def summary(rows: Sequence[Judged]) -> dict[str, float]:
    """Count, absolute errors of the prediction, and the median of measured / predicted."""
    errors = [abs(each.error) for each in rows]
    p90 = quantiles(errors, n=10, method="inclusive")[-1] if len(errors) > 1 else errors[0]
    ratio = median(each.measured_s / each.predicted_s for each in rows)
    return dict(zip(NAMES, (len(rows), median(errors), p90, max(errors), ratio), strict=True))


def result() -> dict[str, Any]:
    """The whole result as it is written."""
    rows = list(kernels())
    groups: dict[tuple[str, str, str], list[Judged]] = defaultdict(list)
    for each in judged(rows):
        groups[each.kind, each.card, each.size].append(each)
        groups[each.kind, "all", "all"].append(each)
    reasons = Counter(reason for each in rows if (reason := left_out(each)))
    return {
        "kernels": len(rows),
        "left_out": dict(reasons.most_common()),
        "groups": {" | ".join(name): summary(members) for name, members in sorted(groups.items())},
    }


def main() -> None:
    """Judge, print, write."""
    found = result()
    rows = [[*name.split(" | "), *each.values()] for name, each in found["groups"].items()]
    table(("kernel", "card", "size", *NAMES), rows)
    for reason, count in found["left_out"].items():
        print(f"left out {count}: {reason}")
    save("kernel_bench", found)


if __name__ == "__main__":
    main()
