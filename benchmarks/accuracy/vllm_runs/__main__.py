"""Real vLLM servers' runs against their simulation: python -m benchmarks.accuracy.vllm_runs.

Prints errors by run, once with what ships (nothing is fitted on a run) and once with coefficients fitted on the first
half of the run's requests; writes benchmarks/results/vllm_runs.json. Takes half a minute on one core; ``--quick``
leaves the fits out and writes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.accuracy.vllm_runs.fitted import fit_first_half, halves
from benchmarks.accuracy.vllm_runs.judged import Errors, errors, measured, sent_back, sent_back_in, simulated, times_of
from benchmarks.accuracy.vllm_runs.runs import RUNS, VllmRun
from benchmarks.record import save, table

SHIPPED_BARS = {"e2e": 0.08, "tpot": 0.08, "ttft_p50": 0.10, "throughput": 0.05}
FITTED_BARS = {"e2e": 0.04, "tpot": 0.04, "ttft_p50": 0.04}
HEADER = ("run", "coefficients", "KV blocks", *SHIPPED_BARS, "e2e bias", "missed")


def shipped(run: VllmRun) -> Iterator[dict[str, Any]]:
    """The run by the shipped clock, in the pool that the engine logged and in the one worked out."""
    known = measured(run)
    for whose, blocks in (("logged", run.told_blocks), ("own", run.own_blocks)):
        if blocks is None:
            continue
        found = simulated(run, blocks)
        yield {
            "coefficients": "shipped",
            "pool": whose,
            "blocks": blocks,
            **_judged(errors(times_of(found), known), SHIPPED_BARS),
            "preemptions": int(np.array(found.requests.preemptions).sum()),
            "sent_back": asdict(sent_back_in(run, found)),
            "cached_tokens": int(np.array(found.requests.cached_tokens).sum()),
        }


def fitted(run: VllmRun) -> dict[str, Any]:
    """The second half of the run by coefficients fitted on the first."""
    blocks = run.told_blocks or run.own_blocks
    coefficients = fit_first_half(run, blocks)
    first, second = halves(run, blocks, coefficients)
    return {
        "coefficients": "fitted on the first half",
        "pool": "logged" if run.told_blocks else "own",
        "blocks": blocks,
        **_judged(second, FITTED_BARS),
        "first_half": first.to_json(),
        "values": {name: float(f"{value:.4g}") for name, value in coefficients.to_dict().items()},
    }


def _judged(found: Errors, bars: Mapping[str, float]) -> dict[str, Any]:
    missed = [name for name, most in bars.items() if abs(getattr(found, name)) > most]
    return {"errors": found.to_json(), "missed": missed}


def rows(run: VllmRun, *, quick: bool) -> list[dict[str, Any]]:
    """All that is judged of one run."""
    return [*shipped(run), *([] if quick else [fitted(run)])]


def main() -> None:
    """Judge every run, print the table, keep the result."""
    quick = "--quick" in sys.argv[1:]
    found = {run.name: rows(run, quick=quick) for run in RUNS}
    table(HEADER, [_cells(name, row) for name, each in found.items() for row in each])
    print("\nsent back: admitted and not running, seen once a second (mean, sum of increases)")
    for run in RUNS:
        known = sent_back(run)
        print(f"  {run.name}: measured {known.mean} / {known.increases}", end="")
        for row in found[run.name]:
            if "sent_back" in row:
                seen = row["sent_back"]
                print(f"; {row['pool']} pool {seen['mean']} / {seen['increases']}, {row['preemptions']} in all", end="")
        print()
    if not quick:
        bars = {"shipped": SHIPPED_BARS, "fitted": FITTED_BARS}
        save("vllm_runs", {"bars": bars, "measured_sent_back": _measured(), "runs": found})


def _measured() -> dict[str, Any]:
    return {run.name: asdict(sent_back(run)) for run in RUNS}


def _cells(name: str, row: Mapping[str, Any]) -> tuple[object, ...]:
    known = row["errors"]
    percents = [f"{100 * known[each]:.1f}%" for each in (*SHIPPED_BARS, "e2e_bias")]
    return (name, row["coefficients"], f"{row['blocks']} ({row['pool']})", *percents, ", ".join(row["missed"]) or "-")


if __name__ == "__main__":
    main()
