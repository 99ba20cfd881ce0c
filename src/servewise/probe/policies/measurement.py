"""The whole measurement: calibrate, run a policy at a rate, calibrate, run the next; predict and compare.

A machine's speed drifts with what else it does. So each run stands between two calibrations, and is predicted with the
clock fitted to those two; no step of a measured run is ever fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.conditions import Conditions
from servewise.engine.step import Model
from servewise.probe.policies.calibration import calibrate, calibration_policies
from servewise.probe.policies.clock import Clock
from servewise.probe.policies.comparison import Compared, capacity_per_s, compare_runs, keeps_up
from servewise.probe.policies.drive import BLOCK_TOKENS, Driven, TimedShape, drive, prompts_of
from servewise.probe.policies.fitted_steps import FittedSteps, errors_of, fit_steps
from servewise.probe.policies.kept import kept_run, kept_shapes
from servewise.steptime.shape import decode_shape
from servewise.workload.request import Request
from servewise.workload.synthetic import Synthetic

# Where the study's rates lie between idle and its continuous policy's saturation near 0.10 a step.
SHARES_OF_CAPACITY = (0.1, 0.2, 0.3, 0.4, 0.7)
WINDOW_STEPS = 20  # the study's window of dynamic batching, in steps
NAMES = ("static", "dynamic", "continuous")
CALIBRATION_TICKS = 30  # what a calibration counts for in the progress, in requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured. ``rates`` and ``window_s`` None: chosen from the first calibration, as the study's lie.

    ``blocks`` hold every slot's longest request, so that the KV pool never decides.
    """

    traffic: Synthetic
    seed: int
    slots: int
    policies: tuple[str, ...]
    max_batched_tokens: int
    longest_tokens: int
    rates: tuple[float, ...] | None = None
    window_s: float | None = None

    @property
    def blocks(self) -> int:
        """KV blocks of the engine."""
        return self.slots * -(-self.longest_tokens // BLOCK_TOKENS)

    @property
    def continuous(self) -> Continuous:
        """The continuous policy."""
        return Continuous(max_sequences=self.slots, max_batched_tokens=self.max_batched_tokens)

    def requests(self, rate_per_s: float) -> list[Request]:
        """The requests at that rate, in order of arrival; the same lengths at every rate."""
        return list(self.traffic.at_rate(rate_per_s).requests(self.seed))

    def full_step_s(self, clock: FittedSteps) -> float:
        """A decode step with every slot busy, each half way through a mean request [s]."""
        context = self.traffic.mean_prompt_tokens + self.traffic.mean_output_tokens / 2
        return clock.seconds(decode_shape(self.slots, round(context), clock.window_tokens))

    def chosen(self, window_s: float) -> list[Policy]:
        """The policies, in order."""
        made: Mapping[str, Policy] = {
            "static": Static(self.slots),
            "dynamic": Dynamic(self.slots, window_s),
            "continuous": self.continuous,
        }
        return [made[name] for name in self.policies]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What came out. ``clock`` is fitted to all calibrations; ``calibrations`` say how well each was met."""

    compared: tuple[Compared, ...]
    clock: FittedSteps
    calibrations: tuple[Mapping[str, float], ...]
    capacity_per_s: float
    window_s: float


class Ticks:
    """Counts work done and tells it; ``total`` in requests ended."""

    def __init__(self, total: int, tell: Callable[[int, int], None] | None) -> None:
        self._total, self._tell, self._before = total, tell, 0

    def within(self, done: int) -> None:
        """``done`` of the piece at hand."""
        if self._tell is not None:
            self._tell(min(self._before + done, self._total), self._total)

    def finished(self, piece: int) -> None:
        """A piece of that size is done, or was kept."""
        self._before += piece
        self.within(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The engine's model on its machine's clock, and where measurements are kept with what ``settings``."""

    model: Model
    plan: Plan
    clock: Clock
    conditions: Conditions
    settings: Mapping[str, Any]
    folder: Path | None
    ticks: Ticks

    @property
    def window_tokens(self) -> int | None:
        """The model's attention window."""
        return self.model.config.window_tokens

    def calibrated(self, turn: int) -> list[TimedShape]:
        """The steps of calibration ``turn``."""
        plan, policies = self.plan, calibration_policies(self.plan.slots, self.plan.continuous)

        def run() -> list[TimedShape]:
            return calibrate(self.model, policies, plan.traffic, blocks=plan.blocks, clock=self.clock, turn=turn)

        found = kept_shapes(self.folder, f"calibration-{turn}", {**self.settings, "turn": turn}, run)
        self.ticks.finished(CALIBRATION_TICKS)
        return found

    def driven(self, policy: Policy, rate: float, window_s: float) -> Driven:
        """The requests of ``rate`` under ``policy``, for real."""
        plan = self.plan
        requests = plan.requests(rate)

        def run() -> Driven:
            prompts = prompts_of(requests, self.model.config.vocabulary, plan.seed)
            return drive(
                self.model, policy, requests, prompts, blocks=plan.blocks, clock=self.clock, ended=self.ticks.within
            )

        settings = {**self.settings, "policy": policy.name, "rate_per_s": rate, "window_s": window_s}
        conditions = self.conditions.at(load=f"{rate:g} requests/s")
        found = kept_run(self.folder, f"{policy.name}-{rate:g}", settings, conditions, policy.slots, run)
        self.ticks.finished(len(requests))
        return found


def measure(
    model: Model,
    plan: Plan,
    clock: Clock,
    *,
    conditions: Conditions,
    settings: Mapping[str, Any],
    folder: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Run it all. ``folder`` keeps what was measured, and with which ``settings``, so that only the same goes on."""
    runs = len(plan.rates or SHARES_OF_CAPACITY) * len(plan.policies)
    work = runs * len(plan.requests(1.0)) + (runs + 1) * CALIBRATION_TICKS
    bench = Bench(
        model=model,
        plan=plan,
        clock=clock,
        conditions=conditions,
        settings=settings,
        folder=folder,
        ticks=Ticks(work, progress),
    )
    bursts = [bench.calibrated(0)]
    first = fit_steps(bursts[0], bench.window_tokens)
    capacity = capacity_per_s(plan.continuous, first, plan.traffic, plan.blocks)
    window_s = plan.window_s if plan.window_s is not None else WINDOW_STEPS * plan.full_step_s(first)
    policies = plan.chosen(window_s)
    compared: list[Compared] = []
    for rate in plan.rates or tuple(float(f"{share * capacity:.3g}") for share in SHARES_OF_CAPACITY):
        for policy in policies:
            driven = bench.driven(policy, rate, window_s)
            bursts.append(bench.calibrated(len(bursts)))
            clock_then = fit_steps(bursts[-2] + bursts[-1], bench.window_tokens)
            compared.append(_compare(plan, policy, rate, driven, clock_then))
    whole = fit_steps([each for found in bursts for each in found], bench.window_tokens)
    return Measurement(
        compared=tuple(sorted(compared, key=lambda each: plan.policies.index(each.policy))),
        clock=whole,
        calibrations=tuple(errors_of(whole, each) for each in bursts),
        capacity_per_s=capacity,
        window_s=window_s,
    )


def _compare(plan: Plan, policy: Policy, rate: float, driven: Driven, clock: FittedSteps) -> Compared:
    stable = keeps_up(policy, clock, plan.traffic, rate, plan.blocks)
    return compare_runs(policy, rate, plan.requests(rate), driven, clock, plan.blocks, stable=stable)
