"""Static, dynamic and continuous batching, measured on a real model, beside the simulator's prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from servewise.answer import Answer
from servewise.ask.numbers import positive, positives, whole
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.compiled.load import Loaded, load_model
from servewise.errors import InputError, UnknownName
from servewise.probe.ops.machine import Machine, this_machine
from servewise.probe.ops.operation import dtype_named
from servewise.probe.policies.clock import clock_named
from servewise.probe.policies.comparison import row_of
from servewise.probe.policies.measurement import NAMES, Measurement, Plan, measure
from servewise.version import __version__
from servewise.workload.arrivals import Poisson
from servewise.workload.lengths import Lognormal
from servewise.workload.synthetic import Synthetic

# The study's lengths (median 58, sigma 0.77) at a fifth, so that a run takes a minute on a CPU.
PROMPT_MEDIAN, PROMPT_SIGMA, OUTPUT_MEDIAN, OUTPUT_SIGMA = 24, 0.5, 12, 0.77
LONGEST_PROMPT, LONGEST_OUTPUT = 96, 64
WITHIN = 0.10
DISTURBED = 0.02


def probe_policies(
    model: str,
    *,
    policies: str | Iterable[str] = NAMES,
    rates: float | Iterable[float] | None = None,
    requests: int = 100,
    slots: int = 8,
    window: float | None = None,
    max_batched_tokens: int = 256,
    prompt_median: int = PROMPT_MEDIAN,
    output_median: int = OUTPUT_MEDIAN,
    longest_prompt: int = LONGEST_PROMPT,
    longest_output: int = LONGEST_OUTPUT,
    dtype: str = "bfloat16",
    layers: int | None = None,
    device: str = "cpu",
    kernels: str = "auto",
    threads: int | None = None,
    clock: str = "wall",
    seed: int = 0,
    run_dir: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Latencies and utilisation of each of ``policies`` at each of ``rates`` [requests/s], measured and predicted.

    The same Poisson arrivals and lognormal lengths for every policy, through the running engine, ``slots`` sequences
    at once. The prediction is the simulator's, with the same policy objects and requests, timed by a clock that is
    fitted to calibration bursts of the engine and to no step of a measured run. ``rates`` None: five between a tenth
    and seven tenths of the capacity that the first calibration shows; ``window`` [s] None: 20 steps, as in the study.
    ``layers``: only the model's first ones. ``clock``: ``wall``, or ``undisturbed`` (one thread), which stands still
    while the process waits for a core. ``kernels``: ``auto``, ``torch`` or ``compiled`` (``load_model``). ``run_dir``
    keeps every run, and a probe with the same settings goes on there.
    """
    machine, checkpoint = this_machine(device, threads), load_checkpoint(model)
    plan = Plan(
        traffic=_traffic(requests, prompt_median, output_median, longest_prompt, longest_output),
        seed=whole(seed, "seed", least=0),
        slots=whole(slots, "slots", most=4096),
        policies=_policies(policies),
        max_batched_tokens=whole(max_batched_tokens, "max_batched_tokens"),
        longest_tokens=longest_prompt + longest_output,
        rates=None if rates is None else positives(rates, "rates"),
        window_s=None if window is None else positive(window, "window"),
    )
    seconds = clock_named(clock, machine)
    decoder, computing = _loaded(checkpoint, dtype, layers, device, kernels)
    if plan.longest_tokens > decoder.config.max_context_tokens:
        what = f"requests of {plan.longest_tokens} tokens are beyond the context of {decoder.config.max_context_tokens}"
        raise InputError(what, where="lengths", hint="lower longest_prompt or longest_output")
    conditions = _conditions(machine, checkpoint, decoder.config.layers, plan, dtype, computing, clock)
    found = measure(
        decoder,
        plan,
        seconds,
        conditions=conditions,
        settings=conditions.to_json() | {"requests": requests, "clock": clock},
        folder=None if run_dir is None else Path(run_dir),
        progress=progress,
    )
    return Answer("probe-policies", conditions, _result(found, clock), _caveats(found, clock))


def _traffic(requests: int, prompt: int, output: int, longest_prompt: int, longest_output: int) -> Synthetic:
    return Synthetic(
        arrivals=Poisson(1.0),
        prompt_lengths=Lognormal(whole(prompt, "prompt_median"), PROMPT_SIGMA, whole(longest_prompt, "longest_prompt")),
        output_lengths=Lognormal(whole(output, "output_median"), OUTPUT_SIGMA, whole(longest_output, "longest_output")),
        count=whole(requests, "requests", most=100_000),
    )


def _policies(names: str | Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in found:
        if name not in NAMES:
            raise UnknownName("policy", name, NAMES, where="policies", hint=f"one of {', '.join(NAMES)}")
    if not found:
        raise InputError("at least one is needed", where="policies", hint=f"of {', '.join(NAMES)}")
    return found


def _loaded(checkpoint: Checkpoint, dtype: str, layers: int | None, device: str, kernels: str) -> Loaded:
    loaded = load_model(checkpoint, dtype=dtype_named(dtype), device=device, kernels=kernels)
    if layers is None:
        return loaded
    return Loaded(loaded.model.first_layers(whole(layers, "layers")), loaded.kernels)


def _conditions(
    machine: Machine, checkpoint: Checkpoint, layers: int, plan: Plan, dtype: str, kernels: str, clock: str
) -> Conditions:
    all_layers = checkpoint.config.layers
    cut = f", first {layers} of {all_layers} layers" if layers < all_layers else ""
    rates = "rates by capacity" if plan.rates is None else f"{', '.join(f'{each:g}' for each in plan.rates)} requests/s"
    return Conditions(
        hardware=f"1 x {machine}",
        load=rates,
        lengths=f"{plan.traffic.prompt_lengths} tokens in, {plan.traffic.output_lengths} out",
        precision=f"{dtype}; weights stored as {checkpoint.stored}",
        model=checkpoint.config.name + cut,
        engine=f"servewise engine by {kernels}; PyTorch {torch.__version__}, {clock} clock",
        estimator="fitted to calibration bursts of the engine",
        policy=f"{', '.join(plan.policies)}; {plan.slots} slots, {plan.max_batched_tokens} tokens a step",
        workload=f"Poisson, {plan.traffic.count} requests a run",
        seeds=(plan.seed,),
        version=__version__,
    )


def _result(found: Measurement, clock: str) -> dict[str, Any]:
    rows = [row_of(each, WITHIN) for each in found.compared]
    judged = [row for row in rows if row["below_saturation"]]
    return {
        "rows": rows,
        "judged": len(judged),
        "within_10_percent": sum(row["within"] for row in judged),
        "within_10_percent_at_speed": sum(row["within_at_speed"] for row in judged),
        "all_within": all(row["within"] for row in judged),
        "largest_error": max((abs(row[key] - 1) for row in judged for key in _JUDGED), default=None),
        "capacity_per_s": found.capacity_per_s,
        "window_s": found.window_s,
        "clock": clock,
        "calibrations": [dict(each) for each in found.calibrations],
        "step_time": found.clock.to_json(),
    }


_JUDGED = ("e2e_p50_ratio", "e2e_p95_ratio")


def _caveats(found: Measurement, clock: str) -> tuple[Caveat, ...]:
    caveats = []
    waited = [each.waited for each in found.compared if each.waited is not None]
    if waited and max(waited) > DISTURBED:
        message = f"other programs kept the engine waiting for a core, for up to {max(waited):.0%} of a run's wall time"
        if clock == "wall":
            cure = "measure on an idle machine, or with --clock undisturbed --threads 1"
        else:
            message += "; the clock stood still meanwhile, but what they took of caches and memory bandwidth remains"
            cure = "measure on an idle machine"
        caveats.append(Caveat("disturbed", message, cure))
    drift = [each["sum_ratio"] for each in found.calibrations]
    if max(drift) / min(drift) > 1 + WITHIN / 2:
        message = f"the same steps took {max(drift) / min(drift) - 1:.0%} longer in one calibration than in another"
        caveats.append(Caveat("drift", message, "measure on an idle machine, at a fixed clock frequency"))
    moved = [
        each for each in found.compared if each.stable and not each.within(WITHIN) and each.within_at_speed(WITHIN)
    ]
    if moved:
        which = ", ".join(f"{each.policy} at {each.rate_per_s:g}/s ({each.slowness:.2f} times)" for each in moved)
        message = f"off by over 10% because the machine's speed changed between calibration and run: {which}"
        caveats.append(Caveat("speed-changed", message, "measure on an idle machine; ratios_at_speed leave it out"))
    unstable = [f"{each.policy} at {each.rate_per_s:g}/s" for each in found.compared if not each.stable]
    if unstable:
        message = f"at or above saturation, where latencies grow with the run: {', '.join(unstable)}; not judged"
        caveats.append(Caveat("unstable", message, "a lower rate"))
    return tuple(caveats)
