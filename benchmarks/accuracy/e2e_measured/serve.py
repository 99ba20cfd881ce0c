"""A measured point again, in the simulator: the same clients, lengths, limits and memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.accuracy.e2e_measured.held import Held
from benchmarks.accuracy.e2e_measured.points import MODELS, Point
from benchmarks.accuracy.e2e_measured.settings import ROUNDS, Settings
from servewise.batching.policies.trtllm import TrtLlm
from servewise.batching.policies.vllm import Vllm
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.metrics.latency import floats, ints
from servewise.modelspec.load import load_model
from servewise.precision import parse_precision
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.run import Run, simulate
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.estimator import Estimator
from servewise.steptime.lookup import Found, coefficients_for
from servewise.steptime.served import ServedRoofline
from servewise.steptime.server_overheads import ServerOverheads, with_launches
from servewise.workload.lengths import Fixed, Lengths, Uniform
from servewise.workload.synthetic import ClosedLoop

INFERENCEX_VLLM = "0.11"  # of October 2025


@dataclass(frozen=True, slots=True)
class Served:
    """Means over a simulated run's requests [s]; ``queue_s`` is the part of ``ttft_s`` before admission."""

    ttft_s: float
    tpot_s: float
    queue_s: float


@cache
def deployment_of(point: Point, settings: Settings) -> Deployment:
    """The point's deployment: KV cache in FP8 where the weights are in 8 bits or fewer."""
    weights = parse_precision(point.dtype)
    version = point.version or (INFERENCEX_VLLM if point.engine == "vllm" else "")
    return Deployment(
        model=load_model(MODELS[point.model]),
        accelerator=load_accelerator(point.accelerator),
        kv=parse_precision("bf16" if point.dtype == "bf16" else "fp8"),
        activations=weights,
        weights=weights,
        engine=f"vllm-{version}" if point.engine == "vllm" else point.engine,
        parallelism=Parallelism(tensor=point.tensor),
        limits=Limits(
            memory_utilization=0.9,
            max_batched_tokens=settings.max_batched_tokens,
            max_sequences=settings.max_sequences,
            max_context_tokens=point.prompt_tokens + point.output_tokens + 200,
        ),
    )


@cache
def capacity_of(point: Point, settings: Settings) -> KvCapacity:
    """The pool; every measured deployment fits."""
    capacity = kv_capacity(deployment_of(point, settings))
    if not isinstance(capacity, KvCapacity):
        raise AssertionError(f"{point.name} ran, and does not fit here")
    return capacity


@cache
def found_for(point: Point, settings: Settings) -> Found:
    """The shipped coefficients of its kernels."""
    return coefficients_for(deployment_of(point, settings))


def clock(point: Point, settings: Settings, overheads: ServerOverheads) -> Estimator:
    """The shipped kernels with ``overheads`` around them."""
    known = with_launches(found_for(point, settings).coefficients, overheads.launch_scale)
    return ServedRoofline(CalibratedRoofline(deployment_of(point, settings), known), overheads, name="served")


def serve(point: Point, settings: Settings, overheads: ServerOverheads, *, rounds: int = ROUNDS) -> Served:
    """The point simulated: all clients at once at the start, ``rounds`` requests each, means over all of them."""
    run = run_of(point, settings, clock(point, settings, overheads), rounds)
    requests = run.requests
    sent, first, end = floats(requests.sent_s), floats(requests.first_token_s), floats(requests.end_s)
    admitted = floats(requests.admitted_s)
    later = np.maximum(ints(requests.output_tokens) - 1, 1)
    return Served(
        ttft_s=float((first - sent).mean()),
        tpot_s=float(((end - first) / later).mean()),
        queue_s=float((admitted - sent).mean()),
    )


def run_of(point: Point, settings: Settings, estimator: Estimator, rounds: int) -> Run:
    """The records of the simulated run."""
    pool = capacity_of(point, settings)
    loop = ClosedLoop(
        point.concurrency,
        0.0,
        _lengths(point.prompt_tokens, settings.spread),
        _lengths(point.output_tokens, settings.spread),
        point.concurrency * rounds,
    )
    source = ClosedArrivals(loop.shapes(seed=0), point.concurrency)
    return simulate(source, policy_of(point, settings), estimator, blocks=pool.blocks, block_tokens=pool.block_tokens)  # type: ignore[arg-type]


def policy_of(point: Point, settings: Settings) -> Vllm | TrtLlm | Held:
    """The engine's preset with the run's settings; nobody's prompts were cached."""
    if point.engine == "vllm":
        return Vllm(
            max_num_seqs=settings.max_sequences,
            max_num_batched_tokens=settings.max_batched_tokens,
            enable_prefix_caching=False,
            async_scheduling=settings.ahead,
        )
    preset = TrtLlm(
        max_batch_size=settings.max_sequences,
        max_num_tokens=settings.max_batched_tokens,
        enable_chunked_prefill=settings.chunked,
        enable_block_reuse=False,
        disable_overlap_scheduler=not settings.ahead,
    )
    if not settings.batch_waiting:
        return preset
    return Held(inner=preset, batch_wait_timeout_iters=20, batch_wait_max_tokens_ratio=0.9)


def _lengths(tokens: int, spread: float) -> Lengths:
    return Fixed(tokens) if spread == 1.0 else Uniform(int(spread * tokens), tokens)
