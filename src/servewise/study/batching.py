"""The study's batching table, where it saturates, and how its overloaded rows depend on the length of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import fmean

from servewise.study import published
from servewise.study.agreement import holds, lies_in, rounded, shown, value, within_interval
from servewise.study.policy_runs import (
    LEVEL,
    POLICIES,
    REQUESTS,
    RunFigures,
    all_at_once,
    arrivals,
    length_figures,
    mean_interval,
    prediction_interval,
    run,
)
from servewise.study.row import StudyRow, StudyTable

SEEDS, FEWER_SEEDS = 40, 20
RUN_LENGTHS = (750, 1500, 3000)
NEAR_SATURATION = (0.04, 0.07)  # requests per step, of static and dynamic batching
WIDE = 4.0  # from an interval's lower to its upper end
RULE = (
    f"the study's one run lies where one more of our runs of {REQUESTS:,} requests would, with a chance of {LEVEL:.0%}"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure of the study and ours of it, one a seed."""

    case: Mapping[str, object]
    quantity: str
    printed: str
    unit: str
    values: Sequence[float]

    def judged(self) -> StudyRow:
        """The row: our mean, the interval for one more run, and in the note the mean's own interval."""
        (low, high), (low_95, high_95) = mean_interval(self.values), prediction_interval(self.values, 0.95)
        note = f"95% interval of the mean {low:.4g} to {high:.4g}, of one run {low_95:.4g} to {high_95:.4g}"
        found, interval = fmean(self.values), prediction_interval(self.values)
        if interval[1] > WIDE * interval[0]:
            note += "; so wide that agreement says little: near saturation runs differ that much"
        return within_interval(self.case, self.quantity, self.printed, found, interval, RULE, self.unit, note)

    def shown(self, why: str) -> StudyRow:
        """The row without a verdict."""
        found, interval = fmean(self.values), prediction_interval(self.values)
        return shown(self.case, self.quantity, self.printed, found, why, self.unit, interval=interval)


def batching_table() -> StudyTable:
    """p50, p95 and utilisation of each policy at each rate."""
    samples = [
        sample
        for rate, by_policy in published.BATCHING.items()
        for policy, printed in by_policy.items()
        for sample in _samples({"rate_per_step": rate, "policy": policy}, printed, runs(policy, rate, SEEDS))
    ]
    inside = sum(lies_in(each.printed, prediction_interval(each.values, 0.95)) for each in samples)
    return StudyTable(
        name="batching",
        title="Median and p95 latency in decoding steps, utilisation over busy steps (8 slots)",
        rows=tuple(each.judged() for each in samples),
        note=f"{SEEDS} seeds of {REQUESTS:,} requests; output lengths lognormal of median 58 and sigma 0.77, found by "
        f"experiment. Of the study's {len(samples)} figures {inside} lie within the 95% interval of one run, where "
        f"{0.95 * len(samples):.0f} are expected by chance: hence {LEVEL:.0%} for a verdict. Static and dynamic at "
        "0.04 and 0.07 are at or beyond saturation: their latencies grow with the run, see run_length",
    )


def batching_runs() -> list[Callable[[], object]]:
    """The runs of the table, one by one, for whoever shows progress."""
    return [partial(runs, policy, rate, SEEDS) for rate, row in published.BATCHING.items() for policy in row]


def run_length_runs() -> list[Callable[[], object]]:
    """The same of ``run_length_table``."""
    pairs = [(policy, rate) for rate in NEAR_SATURATION for policy in ("static", "dynamic")]
    pairs.append(("continuous", NEAR_SATURATION[-1]))
    return [partial(runs, *pair, FEWER_SEEDS, count) for pair in pairs for count in RUN_LENGTHS]


def runs(policy: str, rate: float, seeds: int, requests: int = REQUESTS) -> list[RunFigures]:
    """One run a seed; the same seeds give the same requests to every policy."""
    return [_run(policy, rate, seed, requests) for seed in range(seeds)]


@cache
def _run(policy: str, rate: float, seed: int, requests: int) -> RunFigures:
    """Kept, since the tables share some runs and a run depends on nothing else."""
    return run(POLICIES[policy], arrivals(rate, seed, requests))


def _samples(case: Mapping[str, object], printed: Sequence[str], found: Sequence[RunFigures]) -> list[Sample]:
    p50, p95, busy = printed
    return [
        Sample(case, "latency p50", p50, "steps", [each.p50 for each in found]),
        Sample(case, "latency p95", p95, "steps", [each.p95 for each in found]),
        Sample(case, "utilisation", busy, "", [each.utilisation for each in found]),
    ]


def run_length_table() -> StudyTable:
    """p50 and p95 at or beyond saturation by the length of the run."""
    rows: list[StudyRow] = []
    for rate in NEAR_SATURATION:
        for policy in ("static", "dynamic"):
            by_length = {count: runs(policy, rate, FEWER_SEEDS, count) for count in RUN_LENGTHS}
            rows += [row for count, found in by_length.items() for row in _length_rows(rate, policy, count, found)]
            rows.append(_growth_row(rate, policy, by_length))
    steady = {count: runs("continuous", NEAR_SATURATION[-1], FEWER_SEEDS, count) for count in RUN_LENGTHS}
    return StudyTable(
        name="run_length",
        title="Latency at or beyond saturation depends on how long the run is",
        rows=(*rows, _growth_row(NEAR_SATURATION[-1], "continuous", steady)),
        note=f"{FEWER_SEEDS} seeds; the study does not say how many requests its run had: some 1,500 fit its figures",
    )


def _length_rows(rate: float, policy: str, count: int, found: Sequence[RunFigures]) -> list[StudyRow]:
    case = {"rate_per_step": rate, "policy": policy, "requests": count}
    samples = _samples(case, published.BATCHING[rate][policy], found)[:2]
    return [each.shown("the length of the study's run is unknown") for each in samples]


def _growth_row(rate: float, policy: str, by_length: Mapping[int, Sequence[RunFigures]]) -> StudyRow:
    """Overloaded: four times the requests, at least twice the p95. Continuous: the same p95."""
    shortest, longest = (fmean(each.p95 for each in by_length[count]) for count in (RUN_LENGTHS[0], RUN_LENGTHS[-1]))
    growth, case = longest / shortest, {"rate_per_step": rate, "policy": policy}
    note = f"{growth:.2f} times the p95 in {RUN_LENGTHS[-1] / RUN_LENGTHS[0]:.0f} times the requests"
    if policy == "continuous":
        return holds(case, "p95 does not grow with the run", growth < 1.1, note)
    limit = 2.0 if rate > value(published.SATURATION["static"]) * 1.1 else 1.2
    return holds(case, "p95 grows with the run", growth > limit, note)


def saturation_table() -> StudyTable:
    """Output lengths, and the rates beyond which the queue grows: by formula and by a server never short of work."""
    lengths = [length_figures(seed) for seed in range(SEEDS)]
    flooded = {
        policy: [run(POLICIES[policy], all_at_once(seed)).throughput for seed in range(FEWER_SEEDS)]
        for policy in published.SATURATION
    }
    slots, mean, longest = published.SLOTS, published.MEAN_OUTPUT, published.MEAN_LONGEST_OF_8
    return StudyTable(
        name="saturation",
        title="Output lengths and saturation",
        rows=(
            Sample({}, "mean output", mean, "tokens", [each[0] for each in lengths]).judged(),
            Sample({}, "mean longest of 8", longest, "tokens", [each[1] for each in lengths]).judged(),
            *(
                rounded(
                    {"policy": policy},
                    f"saturation, {slots} / {length}",
                    published.SATURATION[policy],
                    slots / value(length),
                    "requests per step",
                )
                for policy, length in (("static", longest), ("continuous", mean))
            ),
            *(
                Sample(
                    {"policy": policy},
                    "saturation, simulated",
                    published.SATURATION[policy],
                    "requests per step",
                    found,
                ).judged()
                for policy, found in flooded.items()
            ),
        ),
        note="simulated: all requests wait from the start, so that only the policy limits the throughput",
    )
