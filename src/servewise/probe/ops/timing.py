"""Times of operations on a machine that others use too: many short samples, the disturbed ones set aside, medians.

An operation is called often enough that a sample lasts two milliseconds, shorter than most schedulers' slice. A sample
during which the process's threads waited for a core for more than 2% of the time is disturbed: it is counted, set aside
and made up for, within a limit. Where fewer than three undisturbed ones came, the least disturbed third stands, and
the timing says so. A single thread's waiting is taken off its samples; several threads wait for each other, so theirs
cannot be. The operations are visited in several passes, so that a neighbour's busy minute falls on all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median, quantiles
from typing import NamedTuple

from servewise.probe.ops.machine import Machine, waited_s
from servewise.probe.ops.operation import Operation

SAMPLE_S = 0.002
DISTURBED = 0.02  # share of a sample that the threads waited for a core
FEWEST_CLEAN = 3
LEAST_S = 1e-9  # what is left of a sample at the least
PATIENCE_S = 0.5  # for one visit, however few samples were undisturbed by then


class Sample(NamedTuple):
    """Seconds a call, and the share of the wall time that threads waited for a core (NaN: not known)."""

    call_s: float
    waited: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Median, 10th and 90th percentile of the ``samples`` that stand [s]; ``disturbed`` is how many of all were so.

    ``clean``: only undisturbed ones stand.
    """

    median_s: float
    p10_s: float
    p90_s: float
    samples: int
    disturbed: int
    clean: bool

    @property
    def spread(self) -> float:
        """(p90 - p10) / median."""
        return (self.p90_s - self.p10_s) / self.median_s


def timing_of(samples: Sequence[Sample]) -> Timing:
    """The samples in short.

    >>> timing_of([Sample(1.0, 0.0), Sample(3.0, 0.0), Sample(2.0, 0.0), Sample(9.0, 0.5)]).median_s
    2.0
    """
    undisturbed = [each.call_s for each in samples if is_clean(each)]
    clean = len(undisturbed) >= FEWEST_CLEAN
    third = sorted(samples, key=lambda each: each.waited)[: max(FEWEST_CLEAN, len(samples) // 3)]
    kept = undisturbed if clean else [each.call_s for each in third]
    tenths = quantiles(kept, n=10, method="inclusive") if len(kept) > 1 else kept * 9
    return Timing(
        median_s=median(kept),
        p10_s=tenths[0],
        p90_s=tenths[-1],
        samples=len(kept),
        disturbed=len(samples) - len(undisturbed),
        clean=clean,
    )


def is_clean(sample: Sample) -> bool:
    """Whether the sample was undisturbed, or nobody can tell."""
    return not sample.waited > DISTURBED


def time_operations(
    operations: Sequence[Operation],
    machine: Machine,
    *,
    passes: int,
    samples: int = 5,
    patience_s: float = PATIENCE_S,
    progress: Callable[[int, int], None] | None = None,
) -> list[Timing]:
    """Each operation's timing from ``passes`` visits of ``samples`` samples; ``progress`` is told of each visit."""
    found: list[list[Sample]] = [[] for _ in operations]
    for turn in range(passes):
        for place, each in enumerate(operations):
            found[place] += sample(each.prepare(), machine, samples, patience_s)
            if progress is not None:
                progress(turn * len(operations) + place + 1, passes * len(operations))
    return [timing_of(each) for each in found]


def sample(call: Callable[[], object], machine: Machine, count: int, patience_s: float = PATIENCE_S) -> list[Sample]:
    """Samples of ``call``, warmed up, until ``count`` are undisturbed; at least three, and then for ``patience_s``."""
    call()
    calls = _calls(call, machine)
    found: list[Sample] = []
    until = time.perf_counter() + patience_s
    while len(found) < FEWEST_CLEAN or (sum(map(is_clean, found)) < count and time.perf_counter() < until):
        found.append(_timed(call, machine, calls))
    return found


def _calls(call: Callable[[], object], machine: Machine) -> int:
    """How many calls a sample takes, by the wall's fastest of up to three."""
    fastest = inf
    for _ in range(3):
        machine.synchronise()
        began = time.perf_counter()
        call()
        machine.synchronise()
        fastest = min(fastest, time.perf_counter() - began)
        if fastest > SAMPLE_S:
            break
    return max(1, round(SAMPLE_S / max(fastest, 1e-7)))


def _timed(call: Callable[[], object], machine: Machine, calls: int) -> Sample:
    machine.synchronise()
    several = machine.threads != 1
    waited_before, began = waited_s(all_threads=several), time.perf_counter()
    for _ in range(calls):
        call()
    machine.synchronise()
    took, waited_after = time.perf_counter() - began, waited_s(all_threads=several)
    if waited_before is None or waited_after is None:
        return Sample(took / calls, float("nan"))
    waited = waited_after - waited_before
    return Sample((took if several else max(took - waited, LEAST_S)) / calls, waited / took)
