"""A trace of any length out of the Azure 2023 conversations: the trace repeated, its gaps and lengths drawn anew.

    python -m benchmarks.speed.big_trace BIG.parquet 10000000

A benchmark's generator. Each repetition keeps the trace's pattern of arrivals over its hour, each gap times a lognormal
factor of mean 1 and sigma 0.25, and its pairs of prompt and answer in their order, each length times a factor of sigma
0.1, from 1 token on. What it has not: days and weeks. Columns ``arrival_s``, ``prompt_tokens``, ``output_tokens``;
written some rows at a time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import arro3.core as arrow
import numpy as np
from numpy.typing import NDArray

from servewise.records.streaming import GrowingTable
from servewise.workload.load import presets
from servewise.workload.streams import stream
from servewise.workload.traces.load import load_trace
from servewise.workload.traces.trace import Recorded

GAP_SIGMA, LENGTH_SIGMA, LONGEST = 0.25, 0.1, 16_384
Floats = NDArray[np.float64]


def write(path: Path, requests: int, rate_per_s: float = 20.0, seed: int = 0) -> None:
    """Write ``requests`` requests of ``rate_per_s`` on average at ``path``."""
    recorded = load_trace(presets()["azure-conv"]).recorded
    rng, table, written, start_s = stream(seed, "big trace"), GrowingTable(path), 0, 0.0
    while written < requests:
        gaps = _gaps(recorded, rate_per_s, rng)[: requests - written]
        arrival_s = start_s + np.cumsum(gaps)
        rows = len(gaps)
        columns = {
            "arrival_s": arrival_s,
            "prompt_tokens": _lengths(recorded.prompt_tokens[:rows], rng),
            "output_tokens": _lengths(recorded.output_tokens[:rows], rng),
        }
        table.append(arrow.Table.from_pydict({name: arrow.Array.from_numpy(each) for name, each in columns.items()}))
        written, start_s = written + rows, float(arrival_s[-1])
    table.finish()


def _gaps(recorded: Recorded, rate_per_s: float, rng: np.random.Generator) -> Floats:
    """One repetition's gaps between arrivals [s], the first one too; their mean is 1 / rate."""
    arrival = recorded.arrival_s[:]
    gaps = np.diff(arrival, prepend=-arrival[-1] / (len(arrival) - 1))
    factors = np.exp(rng.normal(-(GAP_SIGMA**2) / 2, GAP_SIGMA, len(gaps)))
    found: Floats = gaps * factors / (rate_per_s * float(gaps.mean()))
    return found


def _lengths(tokens: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    factors = np.exp(rng.normal(-(LENGTH_SIGMA**2) / 2, LENGTH_SIGMA, len(tokens)))
    return np.clip(np.rint(tokens * factors), 1, LONGEST).astype(np.int64)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
