"""The host's time between two steps: added to the accelerator's, or hidden behind it.

Without overlap the accelerator waits while the host schedules, prepares inputs and handles the last step's tokens: a
step takes device + host. With it the host prepares the next step while this one runs: max(device, host). vLLM:
async_scheduling (vllm/v1/core/sched/async_scheduler.py); SGLang: unless disable_overlap_schedule
(sglang/srt/managers/scheduler.py event_loop_overlap); TensorRT-LLM: unless disable_overlap_scheduler
(tensorrt_llm/_torch/pyexecutor/py_executor.py _executor_loop_overlap). What overlap costs in decisions that lag a step
is the policy's (``batching/filling/ahead.py``). Left out: the first step after an idle time, which nothing hides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from servewise.caveats import Caveat
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.estimator import Estimator, Line, StepTime, lasting
from servewise.steptime.shape import StepShape


@dataclass(frozen=True, slots=True)
class Host:
    """What the host takes for a step: ``step_s`` [s] + ``sequence_s`` [s] for each sequence that gets a token."""

    step_s: float
    sequence_s: float = 0.0

    def seconds(self, sequences: int) -> float:
        """The host's time for a step in which ``sequences`` sequences get a token [s]."""
        return self.step_s + self.sequence_s * sequences


@dataclass(frozen=True, slots=True)
class Hosted:
    """An Estimator: the steps of ``device`` with the ``host``'s time, hidden behind them where ``overlaps``."""

    device: Estimator
    host: Host
    overlaps: bool = True

    @property
    def name(self) -> str:
        """The device's, and how the host's time comes to it."""
        return f"{self.device.name}, host {'overlapped' if self.overlaps else 'in turn'}"

    @property
    def window_tokens(self) -> int | None:
        """The model's window."""
        return self.device.window_tokens

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """The device's."""
        return self.device.caveats

    @property
    def request_s(self) -> float:
        """What a request takes outside of steps, where the device's estimator knows it [s]."""
        return float(getattr(self.device, "request_s", 0.0))

    def seconds(self, shape: StepShape) -> float:
        """The step's time [s]."""
        device, host = self.device.seconds(shape), self.host.seconds(shape.logit_rows)
        return max(device, host) if self.overlaps else device + host

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """The device's lines and the host's flat one, or the device's raised by it."""
        host, lines = self.host.seconds(sequences), self.device.decode_lines(sequences)
        if self.overlaps:
            return (*lines, Line(host, 0.0))
        return tuple(line._replace(base_s=line.base_s + host) for line in lines)

    def step(self, shape: StepShape) -> StepTime:
        """The step's time with its parts; what the host adds to the device's counts as overhead."""
        return lasting(self.device.step(shape), self.seconds(shape))


def overlapped(estimator: CalibratedRoofline) -> Hosted:
    """``estimator`` with the engine's own time between steps, as it was fitted, behind the kernels."""
    coefficients = estimator.coefficients
    alone = replace(coefficients, step_overhead_s=0.0)
    device = CalibratedRoofline(estimator.deployment, alone, estimator.caveats)
    return Hosted(device, Host(coefficients.step_overhead_s))
