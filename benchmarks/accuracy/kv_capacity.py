"""KV capacity against what engines logged: ``python -m benchmarks.accuracy.kv_capacity``.

Question: how far is the predicted KV pool from the one that an engine reports at start-up? Bar: median error of KV
tokens or concurrency at most 5%, p90 at most 15%. Predicted from stated inputs only; the log's own weights, activation,
graph and KV figures never enter. Every row that is left out is printed with its reason.

Fitted are seven constants (memory outside the framework: growth, all in use, collectives over PCIe and over switched
links, a device that shares the host's memory; the estimate of a CUDA graph on one GPU and on several), each the median
of logged figures (kv_constants.csv). They are checked twice: each row without the evidence of its own source, and all
rows with evidence from outside the table alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.accuracy.kv_rows import (
    Case,
    Outcome,
    Row,
    fits_as_logged,
    further_row,
    load_evidence,
    load_plan,
    load_rows,
    outcome,
    refitted,
)
from benchmarks.record import save, table

MEDIAN_BAR, P90_BAR = 0.05, 0.15
FITTED = ("growth", "in_use", "pcie", "switched", "unified", "graph", "split_graph")


def main() -> None:
    """Print the table and write the result."""
    rows, plan = load_rows(), load_plan()
    left = set(rows) - set(plan["case"]) - set(plan["fits"]) - set(plan["excluded"])
    assert not left, f"rows neither used nor excluded: {sorted(left)}"
    outcomes = [outcome(name, rows[name], case) for name, case in plan["case"].items()]
    further = [outcome(name, further_row(case), case) for name, case in plan["further"].items()]
    print_outcomes(outcomes)
    print_misses(outcomes, plan["miss"])
    fits = {name: fits_as_logged(rows[name], case) for name, case in plan["fits"].items()}
    print(f"\nrows that only say whether there is memory for a cache, predicted right: {fits}")
    print_excluded(rows, plan["excluded"])
    print("\nlogs that are not in the table:")
    print_outcomes(further)
    stock = [each for each in outcomes if not plan["case"][each.id].get("own_kernels")]
    figures = {
        "all": summary(outcomes),
        "without builds of own kernels": summary(stock),
        **checks(rows, plan["case"]),
        "further": summary(further),
    }
    print_eras(outcomes)
    print()
    for name, each in figures.items():
        print_summary(name, each)
    save("kv_capacity", as_json(figures, outcomes, further, plan, fits))


def checks(rows: Mapping[str, Row], cases: Mapping[str, Case]) -> dict[str, dict[str, Any]]:
    """The same rows with constants that saw less: not the row's own source; nothing of the table at all."""
    evidence = load_evidence()
    own, outside = [], [each for each in evidence if not each["row"]]
    for name, case in cases.items():
        others = [each for each in evidence if each["row"] != name and each["source"] != rows[name]["source"]]
        own.append(outcome(name, rows[name], case, refitted(case["engine"], others)))
    alone = [outcome(name, rows[name], case, refitted(case["engine"], outside)) for name, case in cases.items()]
    return {"own source left out": summary(own), "evidence from outside alone": summary(alone)}


def print_outcomes(outcomes: Sequence[Outcome]) -> None:
    """The table of every used row."""
    cells = [
        [each.id, each.what, each.unit, each.logged, each.predicted, f"{each.error:+.1%}", f"{each.of_memory:+.1%}"]
        for each in outcomes
    ]
    table(["row", "what", "unit", "logged", "predicted", "error", "of memory"], cells)


def print_misses(outcomes: Sequence[Outcome], causes: Mapping[str, str]) -> None:
    """Every row above the p90 bar with its cause."""
    missed = [each for each in outcomes if abs(each.error) > P90_BAR]
    print(f"\n{len(missed)} of {len(outcomes)} rows above {P90_BAR:.0%}:")
    for each in missed:
        print(f"  {each.id} {each.error:+.1%}: {causes.get(each.id, 'cause not known')}")


def print_eras(outcomes: Sequence[Outcome]) -> None:
    """The errors by engine and era."""
    eras = dict.fromkeys(each.era for each in outcomes)
    errors = {era: [abs(each.error) for each in outcomes if each.era == era] for era in sorted(eras)}
    print("\nby engine and era:")
    table(
        ["profile", "rows", "median error", "largest"],
        [[era, len(each), f"{np.median(each):.1%}", f"{max(each):.1%}"] for era, each in errors.items()],
    )


def print_excluded(rows: Mapping[str, Row], excluded: Mapping[str, str]) -> None:
    """The reason of every row that is left out."""
    print(f"\n{len(excluded)} rows left out:")
    for name, reason in excluded.items():
        print(f"  {name} {rows[name]['model'][:44]}: {reason}")


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Median, p90 and bias of the absolute errors, and whether the bars hold."""
    errors = np.array([abs(each.error) for each in outcomes])
    middle, p90 = float(np.median(errors)), float(np.quantile(errors, 0.9))
    return {
        "n": len(outcomes),
        "median_error": middle,
        "p90_error": p90,
        "median_signed_error": float(np.median([each.error for each in outcomes])),
        "median_gap_of_memory": float(np.median([abs(each.of_memory) for each in outcomes])),
        "bars_hold": middle <= MEDIAN_BAR and p90 <= P90_BAR,
    }


def print_summary(name: str, figures: Mapping[str, Any]) -> None:
    """One line with the bars."""
    print(
        f"{name}: {figures['n']} rows, median error {figures['median_error']:.1%} (bar {MEDIAN_BAR:.0%}), "
        f"p90 {figures['p90_error']:.1%} (bar {P90_BAR:.0%}), median signed {figures['median_signed_error']:+.1%}, "
        f"median gap {figures['median_gap_of_memory']:.2%} of the device"
    )


def as_json(
    figures: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    further: Sequence[Outcome],
    plan: Mapping[str, Any],
    fits: Mapping[str, bool],
) -> dict[str, object]:
    """The result of record."""
    return {
        "bar": {"median": MEDIAN_BAR, "p90": P90_BAR},
        "fitted_constants": list(FITTED),
        "figures": dict(figures),
        "rows": [_row(each) for each in outcomes],
        "further": [_row(each) for each in further],
        "fits": dict(fits),
        "misses": plan["miss"],
        "excluded": plan["excluded"],
    }


def _row(each: Outcome) -> dict[str, object]:
    return {
        "id": each.id,
        "what": each.what,
        "profile": each.era,
        "unit": each.unit,
        "logged": each.logged,
        "predicted": each.predicted,
        "error": each.error,
        "gap_of_memory": each.of_memory,
    }


if __name__ == "__main__":
    main()
