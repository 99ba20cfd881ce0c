"""What the experiments share: a server of that deployment, and loads drawn for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from servewise.batching.policies import Policy
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import parse_precision
from servewise.simulate.run import Run, simulate
from servewise.steptime.api import estimator_for
from servewise.steptime.estimator import Estimator
from servewise.workload.request import Request

BF16 = parse_precision("bf16")


def deployment(
    model: str, accelerator: str, *, tensor: int = 1, engine: str = "vllm", context: int = 2048
) -> Deployment:
    """In 16 bits."""
    return Deployment(
        model=load_model(model),
        accelerator=load_accelerator(accelerator),
        kv=BF16,
        activations=BF16,
        engine=engine,
        parallelism=Parallelism(tensor=tensor),
        limits=Limits(max_context_tokens=context),
    )


def clock(of: Deployment) -> Estimator:
    """The shipped calibration."""
    return estimator_for(of)


def poisson(lengths: Sequence[tuple[int, int]], rate_per_s: float, seed: int) -> Iterator[Request]:
    """Requests of those lengths at Poisson times."""
    gaps = np.random.default_rng(seed).exponential(1 / rate_per_s, len(lengths))
    times = np.cumsum(gaps).tolist()
    return (Request(serial, at, *each) for serial, (at, each) in enumerate(zip(times, lengths, strict=True)))


def run(requests: Iterator[Request], policy: Policy, estimator: Estimator, blocks: int | None, size: int = 16) -> Run:
    """To the end of the last request."""
    return simulate(requests, policy, estimator, blocks=blocks, block_tokens=size)


def mean_running(found: Run, since_s: float = 0.0) -> float:
    """Sequences that held a slot, averaged over the busy time after ``since_s``."""
    steps = found.steps
    held = [
        (run * s, s) for run, s, at in zip(steps.running, steps.seconds, steps.start_s, strict=True) if at >= since_s
    ]
    return sum(each for each, _ in held) / sum(seconds for _, seconds in held)


def tokens_per_s(found: Run) -> float:
    """Output tokens over the run's whole length."""
    return sum(found.requests.output_tokens) / max(found.requests.end_s)
