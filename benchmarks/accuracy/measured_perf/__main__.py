"""Published rates of real engines beside predictions: python -m benchmarks.accuracy.measured_perf.

Every figure that one step, one prompt or one static batch explains, predicted by the shipped estimator with the
engine's profile (borrowed where none was measured). Nothing is tuned to it, save what `fitted` names, which is left
out of the errors. Writes benchmarks/results/measured_perf.json.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import median, quantiles
from typing import Any

from benchmarks.accuracy.measured_perf.judge import Judged, fitted, judged
from benchmarks.accuracy.measured_perf.mixtures import Step, steps
from benchmarks.accuracy.measured_perf.outliers import cause, is_outlier
from benchmarks.record import save, table

NAMES = ("n", "median", "p90", "worst", "measured_over_predicted", "beyond_1.5x")
BAR = 0.10  # median error of decode with one sequence
BREAKDOWNS: Mapping[str, Callable[[Judged], str]] = {
    "engine": lambda each: each.case.engine,
    "accelerator": lambda each: each.case.where.accelerator.name,
    "weights": lambda each: each.case.row.weights.lower(),
    "ranks": lambda each: str(each.case.where.parallelism),
}


def summary(rows: Sequence[Judged]) -> dict[str, float]:
    """Count, absolute errors of the predicted time, the median of measured / predicted, and how many lie far off."""
    errors = [each.error for each in rows]
    p90 = quantiles(errors, n=10, method="inclusive")[-1] if len(errors) > 1 else errors[0]
    ratio = median(each.ratio for each in rows)
    values = (len(rows), median(errors), p90, max(errors), ratio, sum(map(is_outlier, rows)))
    return dict(zip(NAMES, values, strict=True))


def grouped(rows: Sequence[Judged], name: Callable[[Judged], str]) -> dict[str, dict[str, float]]:
    """The summary of each group."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for each in rows:
        groups[name(each)].append(each)
    return {key: summary(members) for key, members in sorted(groups.items())}


def mixtures(rows: Sequence[Step]) -> dict[str, dict[str, float]]:
    """Errors of servers with routed experts, by deployment."""
    groups: dict[str, list[Step]] = defaultdict(list)
    for each in rows:
        groups[each.name].append(each)
    return {
        name: {
            "n": len(members),
            "median": median(each.error for each in members),
            "measured_over_predicted": median(each.measured_s / each.predicted_s for each in members),
        }
        for name, members in groups.items()
    }


def result() -> dict[str, Any]:
    """The whole result as it is written."""
    found, reasons = judged()
    kept = [each for each in found if not fitted(each.case)]
    phases = sorted({each.case.group for each in kept})
    details = {
        phase: {
            what: grouped([each for each in kept if each.case.group == phase], name)
            for what, name in BREAKDOWNS.items()
        }
        for phase in phases
    }
    causes = Counter(f"{each.case.group}: {cause(each)}" for each in kept if is_outlier(each))
    return {
        "figures": len(found) + reasons.total(),
        "predicted": len(found),
        "in_a_fit": len(found) - len(kept),
        "left_out": dict(reasons.most_common()),
        "bar": {"decode, one sequence": BAR},
        "phases": grouped(kept, lambda each: each.case.group),
        "breakdowns": details,
        "outliers": dict(causes.most_common()),
        "mixtures": mixtures(list(steps())),
    }


def main() -> None:
    """Judge, print, write."""
    found = result()
    rows: list[list[object]] = [[phase, "all", "", *each.values()] for phase, each in found["phases"].items()]
    for phase, breakdown in found["breakdowns"].items():
        rows += [[phase, what, name, *e.values()] for what, groups in breakdown.items() for name, e in groups.items()]
    table(("phase", "by", "group", *NAMES), rows)
    sys.stdout.write("\n")
    table(
        ("servers with routed experts", "n", "median", "ratio"),
        [[n, *e.values()] for n, e in found["mixtures"].items()],
    )
    for title in ("left_out", "outliers"):
        sys.stdout.write(f"\n{title.replace('_', ' ')}\n")
        for reason, count in found[title].items():
            sys.stdout.write(f"{count:>5}  {reason}\n")
    save("measured_perf", found)


if __name__ == "__main__":
    main()
