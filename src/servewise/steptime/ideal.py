"""The ideal roofline: the study's two terms, compute = FLOPs / peak and memory = (weights + KV) / bandwidth."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.deployment.expert_load import EVEN
from servewise.errors import InputError
from servewise.steptime.estimator import Line, StepTime
from servewise.steptime.expert_parallel import unused_caveats
from servewise.steptime.floor import Floor, at_rates, floor_of
from servewise.steptime.shape import StepShape
from servewise.steptime.work import Work


@dataclass(frozen=True, slots=True)
class IdealRoofline:
    """An Estimator whose step takes exactly its floor: max(compute, memory), nothing else.

    Measured steps are 1.3 to 5 times as long (launches, kernels below peak, communication): a bound, not a forecast.
    """

    floor: Floor
    window_tokens: int | None = None
    name: str = "ideal"
    caveats: tuple[Caveat, ...] = ()

    def seconds(self, shape: StepShape) -> float:
        """The step's time [s]."""
        return self.floor.seconds(shape)

    def step(self, shape: StepShape) -> StepTime:
        """The step's time with its parts."""
        compute, memory = self.floor.compute_s(shape), self.floor.memory_s(shape)
        longest = max(compute, memory)
        return StepTime(compute, memory, 0.0, 0.0, longest, longest, "compute" if compute > memory else "memory")

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """Compute and memory."""
        return self.floor.decode_lines(sequences)


def ideal_roofline(deployment: Deployment) -> IdealRoofline:
    """The ideal roofline of ``deployment``."""
    window = deployment.model.read_window_tokens
    even = deployment.expert_load == EVEN  # a bound must hold for the best load
    why = "the ideal roofline takes experts to be evenly loaded"
    caveats = () if even else unused_caveats(deployment, why, "--estimator calibrated")
    return IdealRoofline(floor_of(deployment), window, caveats=caveats)


def two_term(
    *,
    weight_bytes: float,
    kv_bytes_per_token: float,
    flops_per_token: float,
    bandwidth: float,
    peak: float,
) -> IdealRoofline:
    """The study's estimator from five plain numbers [bytes, bytes, FLOP, bytes/s, FLOP/s].

    Attention's own FLOPs are left out, as in the study.

    >>> study = two_term(
    ...     weight_bytes=26e9, kv_bytes_per_token=819_200, flops_per_token=26e9, bandwidth=2e12, peak=312e12
    ... )
    >>> round(study.seconds(StepShape(8, 8 * 2048)), 4)
    0.0197
    """
    numbers = {"weight_bytes": weight_bytes, "bandwidth": bandwidth, "peak": peak}
    for name, value in numbers.items():
        if not 0 < value < 1e30:
            raise InputError(f"{name} must be a positive number, not {value!r}")
    for name, value in {"kv_bytes_per_token": kv_bytes_per_token, "flops_per_token": flops_per_token}.items():
        if not 0 <= value < 1e30:
            raise InputError(f"{name} must be a number from 0, not {value!r}")
    work = Work(
        dense_weight_bytes=weight_bytes,
        head_bytes=0.0,
        embedding_bytes_per_token=0.0,
        experts=(),
        kv_bytes_per_token=kv_bytes_per_token,
        windowed_kv_bytes_per_token=0.0,
        state_bytes_per_sequence=0.0,
        flops_per_token=flops_per_token,
        head_flops_per_row=0.0,
        flops_per_pair=0.0,
        flops_per_windowed_pair=0.0,
        decode_flops_per_pair=0.0,
        decode_flops_per_windowed_pair=0.0,
    )
    rates = {"linear_flops_per_s": peak, "head_flops_per_s": peak, "attention_flops_per_s": peak}
    return IdealRoofline(at_rates(work, bandwidth=bandwidth, **rates))
