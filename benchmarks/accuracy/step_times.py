"""How far predicted steps are from measured ones: python -m benchmarks.accuracy.step_times.

The coefficients are fitted on two models and judged on the third, in all three rotations; prints a table and writes
benchmarks/results/step_times.json.
"""

from __future__ import annotations

import json
import math
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import servewise
from benchmarks.accuracy.fit_step_times import NINETY, Judged, rotate, spread
from benchmarks.accuracy.step_data import MODELS, Row, deployment, rows
from servewise.steptime.ideal import ideal_roofline
from servewise.steptime.shipped import Spread

OUTPUT = Path(__file__).parents[1] / "results" / "step_times.json"
COMMAND = "python -m benchmarks.accuracy.step_times"
BARS = {"decode": (0.04, 0.12), "prefill": (0.08, 0.20), "mixed": (0.08, 0.20)}

By = Callable[[Row], str]
BREAKDOWNS: Mapping[str, By] = {
    "held-out model": lambda row: row.key.model,
    "tensor parallel": lambda row: f"TP{row.key.tensor}",
    "accelerator, engine, format": lambda row: f"{row.key.accelerator} {row.key.engine} {row.key.dtype}",
}


def summary(judged: Sequence[Judged]) -> dict[str, float]:
    """Median and 90th percentile of the absolute relative error, its signed median, and the count."""
    errors = np.array([each.error for each in judged])
    return {
        "median": float(np.median(np.abs(errors))),
        "p90": float(np.quantile(np.abs(errors), 0.9)),
        "signed_median": float(np.median(errors)),
        "steps": len(judged),
    }


def breakdown(judged: Iterable[Judged], by: By) -> dict[str, dict[str, float]]:
    """The summary of each part, in order of name."""
    parts: dict[str, list[Judged]] = {}
    for each in judged:
        parts.setdefault(by(each.row), []).append(each)
    return {name: summary(parts[name]) for name in sorted(parts)}


def ideal(measured: Iterable[Row]) -> list[Judged]:
    """The same steps by the ideal roofline, to show what calibration buys."""
    return [Judged(row, ideal_roofline(deployment(row.key)).seconds(row.shape)) for row in measured]


def coverage(judged: Sequence[Judged]) -> float:
    """Share of a held-out model's steps within the 90% interval whose width the other two models' errors gave."""
    of: dict[str, list[Judged]] = {}
    by = BREAKDOWNS["accelerator, engine, format"]
    for each in judged:
        of.setdefault(by(each.row), []).append(each)
    inside = 0
    for members in of.values():
        for held in MODELS:
            wide = spread(each for each in members if each.row.key.model != held)
            inside += sum(_within(each, wide) for each in members if each.row.key.model == held)
    return inside / len(judged)


def _within(judged: Judged, wide: Spread) -> bool:
    sigma = wide.decode if judged.row.phase == "decode" else wide.prefill
    return abs(math.log(judged.predicted_s / judged.row.seconds)) <= NINETY * sigma


def result(measured: Sequence[Row]) -> dict[str, Any]:
    """The whole result as it is written."""
    judged = rotate(measured)
    phases = {}
    for phase, (median, p90) in BARS.items():
        mine = [each for each in judged if each.row.phase == phase]
        overall = summary(mine)
        phases[phase] = {
            "overall": overall,
            "bar": {"median": median, "p90": p90},
            "meets_bar": overall["median"] <= median and overall["p90"] <= p90,
            "ideal_roofline": summary(ideal([each.row for each in mine])),
            **{name: breakdown(mine, by) for name, by in BREAKDOWNS.items()},
        }
    return {
        "command": COMMAND,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}",
        "versions": {"servewise": servewise.__version__, "numpy": np.__version__, "scipy": scipy.__version__},
        "method": "fitted on two of three models, judged on the third, all three rotations",
        "coverage_of_90_percent_interval": coverage(judged),
        "phases": phases,
    }


def table(found: Mapping[str, Any]) -> str:
    """The result as text."""
    lines = [f"{found['coverage_of_90_percent_interval']:.1%} of held-out steps lie within their 90% interval"]
    for phase, each in found["phases"].items():
        bar, verdict = each["bar"], "met" if each["meets_bar"] else "MISSED"
        lines.append(f"\n{phase}: bar {bar['median']:.0%} median, {bar['p90']:.0%} p90: {verdict}")
        lines.append(f"  {'':34}{'steps':>7}{'median':>9}{'p90':>9}{'signed':>9}")
        lines.append(_line("all, held out", each["overall"]))
        lines.append(_line("all, ideal roofline", each["ideal_roofline"]))
        for name in BREAKDOWNS:
            lines.append(f"  by {name}")
            lines += [_line("  " + part, numbers) for part, numbers in each[name].items()]
    return "\n".join(lines)


def _line(name: str, numbers: Mapping[str, float]) -> str:
    return f"  {name:34}{numbers['steps']:>7,}" + "".join(
        f"{numbers[key]:>9.1%}" for key in ("median", "p90", "signed_median")
    )


def main() -> None:
    """Judge, print, write."""
    found = result(rows())
    sys.stdout.write(table(found) + "\n")
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
