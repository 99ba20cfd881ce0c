"""The calibrated roofline: a step as the sum of its kernels, each a roofline with measured efficiencies."""

from __future__ import annotations

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.steptime.attention_time import AttentionTime
from servewise.steptime.coefficients import Coefficients, ValidRange
from servewise.steptime.estimator import Line, StepTime
from servewise.steptime.expert_parallel import uneven_caveats
from servewise.steptime.floor import Floor, floor_of
from servewise.steptime.kernels import host_s
from servewise.steptime.messages import Messages
from servewise.steptime.products import Products
from servewise.steptime.shape import StepShape

MEMO_LIMIT = 2**16


class CalibratedRoofline:
    """An Estimator: matrix products + attention + small kernels + communication + the engine's overhead.

    Kernels of a step run one after another, so their times add; within each, memory and compute overlap. Every part
    is at or above its own floor, so the sum is above the step's. Without CUDA graphs a step takes at least as long as
    the host needs to launch it. What depends on the new tokens alone is kept by their number, which leaves a few
    multiplications for a step.
    """

    def __init__(self, deployment: Deployment, coefficients: Coefficients, caveats: tuple[Caveat, ...] = ()) -> None:
        self.deployment, self.coefficients = deployment, coefficients
        self.caveats = tuple(dict.fromkeys((*caveats, *uneven_caveats(deployment))))
        self.name = f"calibrated ({coefficients.title})"
        self.window_tokens = deployment.model.read_window_tokens
        self.valid_range: ValidRange | None = coefficients.valid_range
        self.floor: Floor = floor_of(deployment)
        self._host_s = host_s(deployment)
        self._products = Products(deployment, coefficients)
        self._messages = Messages(deployment, coefficients)
        self._attention = AttentionTime(deployment, coefficients)
        self._prefill = self._attention.prefill
        self._tiles = self._attention.tiles
        self._by_tokens: dict[int, float] = {}
        self._by_rows: dict[int, float] = {0: 0.0}
        self._by_batch: dict[int, tuple[Line, ...]] = {}
        self._decode_lines: dict[int, tuple[Line, ...]] = {}

    def seconds(self, shape: StepShape) -> float:
        """The step's time [s]."""
        sequences, context, windowed, prompts, tokens, end, windowed_end, pairs, windowed_pairs, rows = shape
        try:
            total = self._by_tokens[sequences + tokens] + self._by_rows[rows]
        except KeyError:
            total = self._linear(sequences + tokens) + self._head(rows)
        if sequences:
            longest = 0.0
            for base, slope, windowed_slope in self._by_batch.get(sequences) or self._attention_lines(sequences):
                line = base + slope * context + windowed_slope * windowed
                if line > longest:  # noqa: PLR1730 (max() costs a call for each line)
                    longest = line
            if prompts and self._tiles is not None:
                longest = max(longest, self._tiles.seconds(sequences, context, windowed, tokens))
            total += longest
        if prompts:
            base, per_prompt, per_token, per_end, per_windowed_end, per_pair, per_windowed_pair = self._prefill
            total += (
                base
                + per_prompt * prompts
                + per_token * tokens
                + per_end * end
                + per_windowed_end * windowed_end
                + per_pair * pairs
                + per_windowed_pair * windowed_pairs
            )
        return total if total > self._host_s else self._host_s

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """The lines whose maximum is the time of a pure decode step."""
        known = self._decode_lines.get(sequences)
        if known is None:
            base = self._linear(sequences) + self._head(sequences)
            lines = self._by_batch.get(sequences) or self._attention_lines(sequences)
            known = tuple(Line(base + start, slope, windowed) for start, slope, windowed in lines)
            if self._host_s:
                known += (Line(self._host_s, 0.0),)
            if len(self._decode_lines) >= MEMO_LIMIT:
                self._decode_lines.clear()
            self._decode_lines[sequences] = known
        return known

    def step(self, shape: StepShape) -> StepTime:
        """The step's time with its parts: times at the measured efficiencies; launches count as overhead."""
        compute = self._products.compute_s(shape) + self._attention.compute_s(shape)
        memory = self._products.memory_s(shape) + self._attention.memory_s(shape)
        communication = self._messages.seconds(shape.tokens) + self._messages.logits_s(shape.logit_rows)
        overhead = self._products.overhead_s(shape) + self._attention.overhead_s(shape)
        overhead = max(overhead, self._host_s - compute - memory - communication)
        parts = {"compute": compute, "memory": memory, "communication": communication, "overhead": overhead}
        return StepTime(
            compute_s=compute,
            memory_s=memory,
            overhead_s=overhead,
            communication_s=communication,
            step_s=self.seconds(shape),
            floor_s=self.floor.seconds(shape),
            bound=max(parts, key=lambda each: parts[each]),
        )

    def _linear(self, tokens: int) -> float:
        known = self._by_tokens.get(tokens)
        if known is None:
            known = self._products.seconds(tokens) + self._messages.seconds(tokens)
            if len(self._by_tokens) >= MEMO_LIMIT:
                self._by_tokens.clear()
            self._by_tokens[tokens] = known
        return known

    def _head(self, rows: int) -> float:
        known = self._by_rows.get(rows)
        if known is None:
            known = self._products.head_seconds(rows) + self._messages.logits_s(rows)
            if len(self._by_rows) >= MEMO_LIMIT:
                self._by_rows.clear()
                self._by_rows[0] = 0.0
            self._by_rows[rows] = known
        return known

    def _attention_lines(self, sequences: int) -> tuple[Line, ...]:
        if len(self._by_batch) >= MEMO_LIMIT:
            self._by_batch.clear()
        lines = self._by_batch[sequences] = self._attention.lines(sequences)
        return lines
