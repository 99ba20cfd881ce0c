"""Servers of known coefficients, simulated: what a calibration must find again."""

from __future__ import annotations

from random import Random

from tests.steptime.known import accelerator, deployed, llama

from servewise.batching.policies import Continuous
from servewise.conditions import Conditions
from servewise.records.run_directory import RunRecord
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.run import Run, simulate
from servewise.steptime.server_coefficients import ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline
from servewise.workload.request import Request

# SmolLM2-135M's sizes on a small CPU.
SMALL = llama("small", 576, 30, 9, 3, 1536, 49152)
WHERE = deployed(SMALL, accelerator("a-cpu", bandwidth=60e9, memory=30e9, bf16=440e9))
TRUTH = ServerCoefficients(
    step_s=0.004,
    sequence_s=0.0008,
    weight_efficiency=0.7,
    flop_efficiency=0.5,
    ramp_tokens=20.0,
    kv_efficiency=0.4,
    attention_efficiency=0.1,
)
POLICY = Continuous(max_sequences=64, max_batched_tokens=2048)


def requests_of(count: int, seed: int, prompts: tuple[int, int] = (32, 700)) -> list[Request]:
    """Requests of varied lengths."""
    rng = Random(seed)
    return [Request(each, 0.0, rng.randint(*prompts), rng.randint(8, 96), ()) for each in range(count)]


def closed_run(streams: int, count: int, seed: int, truth: ServerCoefficients = TRUTH, noise: float = 0.05) -> Run:
    """A closed loop at the true server, stepped one by one, each step's recorded time off by its own noise."""
    clock = ServerRoofline(WHERE, truth)
    run = simulate(ClosedArrivals(iter(requests_of(count, seed)), streams), POLICY, clock, longest_jump=1)
    rng = Random(seed + 1)
    for place in range(len(run.steps)):
        run.steps.seconds[place] *= rng.lognormvariate(0.0, noise)
    return run


def recorded(
    streams: int | None,
    count: int,
    seed: int,
    *,
    truth: ServerCoefficients = TRUTH,
    prompts: tuple[int, int] = (20, 600),
    rate_per_s: float = 4.0,
    noise: float = 0.0,
) -> RunRecord:
    """A measured run as a client keeps it: a closed loop of that many streams, or open at a rate; no steps.

    ``noise``: each request's first token and end are late by their own factor of the latency.
    """
    rng = Random(seed)
    asked = requests_of(count, seed, prompts)
    clock = ServerRoofline(WHERE, truth)
    if streams is None:
        at_s = 0.0
        for place, each in enumerate(asked):
            asked[place] = each._replace(arrival_s=at_s)
            at_s += rng.expovariate(rate_per_s)
        run = simulate(asked, POLICY, clock)
    else:
        run = simulate(ClosedArrivals(iter(asked), streams, 0.001), POLICY, clock)
    columns = run.requests
    for row in range(len(columns)):
        first, sent = columns.first_token_s[row], columns.sent_s[row]
        slow = rng.lognormvariate(0.0, noise)
        columns.first_token_s[row] = sent + (first - sent) * slow
        columns.end_s[row] = sent + (columns.end_s[row] - sent) * slow
    details = {"concurrency": streams, "rate_per_s": None if streams else rate_per_s}
    load = f"{streams} streams" if streams else f"{rate_per_s:g} requests/s"
    conditions = Conditions(hardware="1 x a CPU", load=load, lengths="varied", precision="bf16")
    return RunRecord(kind="measured", conditions=conditions, requests=columns, details=details)
