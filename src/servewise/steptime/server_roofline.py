"""An estimator of a whole server from few coefficients: what ``calibrate`` fits and its file holds."""

from __future__ import annotations

from math import exp

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.steptime.calibrated import MEMO_LIMIT
from servewise.steptime.coefficients import ValidRange, smooth_maximum
from servewise.steptime.estimator import Line, StepTime
from servewise.steptime.expert_parallel import measured_caveats
from servewise.steptime.floor import Floor, floor_of
from servewise.steptime.server_coefficients import SHARPNESS, ServerCoefficients
from servewise.steptime.shape import StepShape

NORMAL_975 = 1.96


class ServerRoofline:
    """An Estimator: the terms of ``ServerCoefficients`` on one deployment's bytes and FLOPs.

    Weights and arithmetic of the products overlap; all else adds. Each efficiency is at most 1, so every term is at
    or above its own floor and their sum above the step's. Messages between ranks are not told apart: they lie in the
    step's and the tokens' costs, hence ``communication_s`` is 0.
    """

    def __init__(
        self,
        deployment: Deployment,
        coefficients: ServerCoefficients,
        *,
        name: str = "fitted server",
        caveats: tuple[Caveat, ...] = (),
        valid_range: ValidRange | None = None,
        spread: float = 0.0,
    ) -> None:
        self.deployment, self.coefficients, self.name = deployment, coefficients, name
        self.caveats = tuple(dict.fromkeys((*caveats, *measured_caveats(deployment))))
        self.valid_range, self.spread = valid_range, spread
        self.window_tokens = deployment.model.read_window_tokens
        self.floor: Floor = floor_of(deployment)
        floor = self.floor
        self._kv = tuple(
            each / coefficients.kv_efficiency
            for each in (floor.per_kv_token, floor.per_windowed_kv_token, floor.per_sequence)
        )
        self._pair, self._windowed_pair = (
            each / coefficients.attention_efficiency for each in (floor.per_pair, floor.per_windowed_pair)
        )
        self._by_rows: dict[tuple[int, int], float] = {}

    @property
    def request_s(self) -> float:
        """What a request takes outside of steps, ahead of its first token [s]."""
        return self.coefficients.request_s

    def bracket(self) -> tuple[ServerRoofline, ServerRoofline] | None:
        """The server at 97.5% and at 2.5% of its slowness, by the spread of predictions on loads that were held out.

        None where no spread is known.
        """
        if not self.spread:
            return None
        times = exp(NORMAL_975 * self.spread)
        slow, fast = (
            ServerRoofline(
                self.deployment,
                self.coefficients.slower(each),
                name=self.name,
                caveats=self.caveats,
                valid_range=self.valid_range,
            )
            for each in (times, 1.0 / times)
        )
        return slow, fast

    def seconds(self, shape: StepShape) -> float:
        """The step's time [s]."""
        sequences, context, windowed, prompts, tokens, end, windowed_end, pairs, windowed_pairs, rows = shape
        key = (sequences + tokens, rows)
        total = self._by_rows.get(key) or self._base(key)
        per_token, per_windowed, per_sequence = self._kv
        if sequences:
            read = per_sequence * sequences + per_token * context + per_windowed * windowed
            computed = self.floor.per_decode_pair * context + self.floor.per_windowed_decode_pair * windowed
            total += read if read > computed else computed
        if prompts:
            total += (
                per_sequence * prompts
                + per_token * end
                + per_windowed * windowed_end
                + self._pair * pairs
                + self._windowed_pair * windowed_pairs
            )
        return total

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """KV bytes as read, and the arithmetic on them at the peak, above the same base."""
        key = (sequences, sequences)
        base = self._by_rows.get(key) or self._base(key)
        per_token, per_windowed, per_sequence = self._kv
        return (
            Line(base + per_sequence * sequences, per_token, per_windowed),
            Line(base, self.floor.per_decode_pair, self.floor.per_windowed_decode_pair),
        )

    def step(self, shape: StepShape) -> StepTime:
        """The step's time with its parts: times at the fitted efficiencies."""
        floor = self.floor
        decode = floor.per_decode_pair * shape.decode_context_tokens
        decode += floor.per_windowed_decode_pair * shape.decode_windowed_tokens
        prefill = self._pair * shape.prefill_pairs + self._windowed_pair * shape.prefill_windowed_pairs
        compute = self._compute_s(shape.tokens, shape.logit_rows) + decode + prefill
        per_token, per_windowed, per_sequence = self._kv
        memory = (
            self._memory_s(shape.tokens, shape.logit_rows)
            + per_token * (shape.decode_context_tokens + shape.prefill_context_tokens)
            + per_windowed * (shape.decode_windowed_tokens + shape.prefill_windowed_tokens)
            + per_sequence * (shape.decode_sequences + shape.prefill_sequences)
        )
        overhead = self._overhead_s(shape.tokens, shape.logit_rows)
        parts = {"compute": compute, "memory": memory, "overhead": overhead}
        return StepTime(
            compute_s=compute,
            memory_s=memory,
            overhead_s=overhead,
            communication_s=0.0,
            step_s=self.seconds(shape),
            floor_s=floor.seconds(shape),
            bound=max(parts, key=lambda each: parts[each]),
        )

    def _base(self, key: tuple[int, int]) -> float:
        """What does not depend on the context: overheads and the products of that many tokens and logit rows [s]."""
        products = smooth_maximum(self._memory_s(*key), self._compute_s(*key), SHARPNESS)
        if len(self._by_rows) >= MEMO_LIMIT:
            self._by_rows.clear()
        known = self._by_rows[key] = self._overhead_s(*key) + products
        return known

    def _overhead_s(self, tokens: int, rows: int) -> float:
        return self.coefficients.step_s + self.coefficients.sequence_s * rows if tokens else 0.0

    def _memory_s(self, tokens: int, rows: int) -> float:
        return self.floor.weights_s(tokens, rows) / self.coefficients.weight_efficiency

    def _compute_s(self, tokens: int, rows: int) -> float:
        ramped = self.coefficients.ramped
        linear = self.floor.per_token_computed * ramped(tokens) + self.floor.per_row * ramped(rows)
        return linear / self.coefficients.flop_efficiency
