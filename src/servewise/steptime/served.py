"""An estimator of a server: the calibrated kernels, and what was fitted of the server around them."""

from __future__ import annotations

from math import exp

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.estimator import Line, StepTime, lasting
from servewise.steptime.floor import Floor
from servewise.steptime.server_overheads import ServerOverheads
from servewise.steptime.server_roofline import NORMAL_975
from servewise.steptime.shape import StepShape


class ServedRoofline:
    """An Estimator: ``kernels`` with the terms of ``ServerOverheads``.

    ``spread`` is the standard deviation of the logarithm of predicted / measured latencies on servers that were held
    out of the fit; ``times`` slows all of it (``bracket``). Never below the kernels' floor.
    """

    def __init__(
        self,
        kernels: CalibratedRoofline,
        overheads: ServerOverheads,
        *,
        name: str,
        caveats: tuple[Caveat, ...] = (),
        spread: float = 0.0,
        times: float = 1.0,
    ) -> None:
        self.kernels, self.overheads, self.name = kernels, overheads, name
        self.caveats, self.spread, self.times = caveats, spread, times
        self.window_tokens = kernels.window_tokens
        self.valid_range: ValidRange | None = kernels.valid_range
        self.floor: Floor = kernels.floor
        self._launched_s = overheads.prompt_layer_s * kernels.deployment.model.layer_count
        self._lines: dict[int, tuple[Line, ...]] = {}

    @property
    def deployment(self) -> Deployment:
        """What is served."""
        return self.kernels.deployment

    @property
    def request_s(self) -> float:
        """What a request takes outside of steps, ahead of its first token [s]."""
        return self.overheads.request_s * self.times

    def bracket(self) -> tuple[ServedRoofline, ServedRoofline] | None:
        """The server at 97.5% and at 2.5% of its slowness, by ``spread``; None without one."""
        if not self.spread:
            return None
        width = exp(NORMAL_975 * self.spread)
        slow, fast = (
            ServedRoofline(self.kernels, self.overheads, name=self.name, caveats=self.caveats, times=times)
            for times in (width, 1.0 / width)
        )
        return slow, fast

    def around(self, kernels: CalibratedRoofline) -> ServedRoofline:
        """The same server around other kernels."""
        return ServedRoofline(
            kernels, self.overheads, name=self.name, caveats=self.caveats, spread=self.spread, times=self.times
        )

    def seconds(self, shape: StepShape) -> float:
        """The step's time [s]."""
        known = self.overheads
        busy = self.kernels.seconds(shape)
        if shape.prefill_sequences:
            busy = max(busy * known.prompt_slowness, self._launched_s)
        total = self.times * (busy + known.step_s + known.sequence_s * shape.logit_rows)
        return total if self.times >= 1.0 else max(total, self.floor.seconds(shape))

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """The kernels' lines above what the server adds."""
        found = self._lines.get(sequences)
        if found is None:
            found = self._lines[sequences] = self._decode_lines(sequences)
        return found

    def _decode_lines(self, sequences: int) -> tuple[Line, ...]:
        known, times = self.overheads, self.times
        added = known.step_s + known.sequence_s * sequences
        lines = self.kernels.decode_lines(sequences)
        served = tuple(Line((base + added) * times, full * times, part * times) for base, full, part in lines)
        return served if times >= 1.0 else (*served, *self.floor.decode_lines(sequences))

    def step(self, shape: StepShape) -> StepTime:
        """The step's time with its parts: the kernels' own, and all that the server adds as overhead."""
        return lasting(self.kernels.step(shape), self.seconds(shape))
