"""What the cut of a run's beginning does to the mean: to queues that need none, and to slow starts that do.

``python -m benchmarks.accuracy.steady_window`` prints the bias of the mean, its 95% error and the share of runs that
were cut, without a cut, by MSER-5 alone, and by what ``bench`` does (MSER-5 where the removed part is unlike the rest).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from servewise.measure.bench.mser import mser5, transient

Floats = NDArray[np.float64]
RUNS = 300
SERVICE_S, FIRST_S = 0.75, 0.25
WAYS: Mapping[str, Callable[[Floats], int]] = {
    "no cut": lambda _: 0,
    "MSER-5 alone": lambda values: mser5(values).first,
    "bench": lambda values: transient(values).first,
}


def queue(rng: np.random.Generator, load: float, count: int) -> Floats:
    """TTFT of an M/D/1 queue that starts empty (Lindley's recursion)."""
    waits = [0.0]
    for gap in rng.exponential(SERVICE_S / load, count - 1).tolist():
        waits.append(max(waits[-1] + SERVICE_S - gap, 0.0))
    return np.array(waits) + FIRST_S


def slow_start(rng: np.random.Generator, times: float, decay: float, count: int) -> Floats:
    """Independent values of mean 1 (gamma, shape 4) that begin ``times`` as large and decay over ``decay`` values."""
    return (1 + (times - 1) * np.exp(-np.arange(count) / decay)) * rng.gamma(4, 0.25, count)


def line(name: str, truth: float, runs: list[Floats]) -> str:
    """Bias +/- error (share cut), for each way."""
    cells = []
    for way, first in WAYS.items():
        cuts = [first(values) for values in runs]
        means = np.array([values[cut:].mean() for values, cut in zip(runs, cuts, strict=True)]) / truth - 1
        error = 1.96 * float(means.std(ddof=1)) / len(runs) ** 0.5
        cells.append(f"{way}: {means.mean():+.1%} +/- {error:.1%} ({np.count_nonzero(cuts) / len(runs):.0%} cut)")
    return f"{name:34}" + "   ".join(cells)


def main() -> None:
    """The table."""
    rng = np.random.default_rng(5)
    for load, count in ((0.3, 300), (0.5, 500), (0.7, 2_000), (0.8, 2_000)):
        truth = FIRST_S + load * SERVICE_S / (2 * (1 - load))  # Pollaczek-Khinchine
        print(line(f"M/D/1, load {load}, {count} requests", truth, [queue(rng, load, count) for _ in range(RUNS)]))
    for times, decay in ((4, 20), (3, 40), (2, 40), (2, 100)):
        runs = [slow_start(rng, times, decay, 500) for _ in range(RUNS)]
        print(line(f"begins {times}x, decays over {decay}, 500", 1.0, runs))


if __name__ == "__main__":
    main()
