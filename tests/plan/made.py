"""Servers and traffic with numbers chosen so that the answers can be worked out by hand."""

from __future__ import annotations

import random
from dataclasses import dataclass

from servewise.batching.policies import Continuous, Policy
from servewise.caveats import Caveat
from servewise.hardware.catalogue import load_accelerator
from servewise.metrics.percentiles import Percentiles
from servewise.metrics.summary import RunSummary
from servewise.modelspec.load import load_model
from servewise.plan.binding import Binding
from servewise.plan.candidates import Candidate, Space, candidates
from servewise.plan.saturation import Knee
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.plan.weighing import Weighed
from servewise.steptime.estimator import Estimator, Line, StepTime
from servewise.steptime.ideal import two_term
from servewise.steptime.shape import StepShape
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True)
class FlatStep:
    """An estimator by which every step takes ``step_s``, whatever it holds."""

    step_s: float
    name: str = "flat"
    window_tokens: int | None = None
    caveats: tuple[Caveat, ...] = ()

    def seconds(self, shape: StepShape) -> float:
        """``step_s``."""
        return self.step_s

    def step(self, shape: StepShape) -> StepTime:
        """``step_s``, all of it overhead."""
        return StepTime(0.0, 0.0, self.step_s, 0.0, self.step_s, 0.0, "overhead")

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """One flat line."""
        return (Line(self.step_s, 0.0),)


def llama_13b(bandwidth: float = 2e12, peak: float = 312e12) -> Estimator:
    """The study's estimator: 26 GB of weights, 0.82 MB of KV a token."""
    return two_term(weight_bytes=26e9, kv_bytes_per_token=819_200, flops_per_token=26e9, bandwidth=bandwidth, peak=peak)


def server(estimator: Estimator, policy: Policy | None = None, blocks: int | None = 4000) -> Server:
    """A server with a pool of ``blocks`` blocks of 16 tokens."""
    return Server(policy=policy or Continuous(), estimator=estimator, blocks=blocks, block_tokens=16)


def poisson(count: int, rate_per_s: float = 1.0, prompt: int = 500, output: int = 100, seed: int = 0) -> Traffic:
    """Poisson arrivals; lengths spread evenly from half to one and a half times the mean."""
    rng = random.Random(seed)
    at, found = 0.0, []
    for serial in range(count):
        tokens, answer = (max(1, round(mean * rng.uniform(0.5, 1.5))) for mean in (prompt, output))
        found.append(Request(serial, at, tokens, answer))
        at += rng.expovariate(rate_per_s)
    return Traffic(tuple(found), rate_per_s)


def fixed(count: int, prompt: int, output: int, rate_per_s: float = 1.0, seed: int = 0) -> Traffic:
    """Poisson arrivals of equal requests."""
    rng = random.Random(seed)
    at, found = 0.0, []
    for serial in range(count):
        found.append(Request(serial, at, prompt, output))
        at += rng.expovariate(rate_per_s)
    return Traffic(tuple(found), rate_per_s)


def candidate(name: str = "a100-80gb", count: int = 1, model: str = "llama-2-13b") -> Candidate:
    """The first candidate of that accelerator and count."""
    space = Space(model=load_model(model), accelerators=(load_accelerator(name),), counts=(count,))
    return candidates(space)[0]


def weighed(of: Candidate, rate_per_s: float, saturation_per_s: float = 100.0, slo_value_s: float = 0.5) -> Weighed:
    """A candidate that keeps the SLO up to that rate, with every latency at ``slo_value_s``."""
    same = Percentiles(mean=slo_value_s, p50=slo_value_s, p90=slo_value_s, p95=slo_value_s, p99=slo_value_s, n=1)
    summary = RunSummary(
        ttft=same,
        tpot=same,
        itl=same,
        e2e=same,
        utilisation=0.5,
        requests_per_s=rate_per_s,
        output_tokens_per_s=rate_per_s,
        goodput_per_s=rate_per_s,
        completed=1,
        rejected=0,
        unfinished=0,
        preemptions=0,
        duration_s=1.0,
    )
    return Weighed(
        candidate=of,
        rate_per_s=rate_per_s,
        stretch_rate_per_s=rate_per_s,
        summary=summary,
        knee=Knee(saturation_per_s, saturation_per_s),
        binding=Binding("bandwidth", 0.5, 0.0, 0.0, 12.0),
        runs=1,
        whole=True,
    )
