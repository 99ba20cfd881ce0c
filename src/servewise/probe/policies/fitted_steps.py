"""A clock for the simulator, fitted to the engine's own steps.

seconds = g(T) + h R + s S + c K + q P + u C, all coefficients >= 0, where T are the step's new tokens (g rises and is
straight between knots: products read every weight once and then cost by the token), R the rows whose logits are
computed, S decoding sequences, K the KV tokens that they read; for prompt chunks P query-key pairs and C KV tokens at
their ends.
Fitted by iterated weighted least squares with weights 1 / predicted², so that sums of steps, which is what latencies
are, come out without bias at every size of step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.probe.policies.drive import TimedShape
from servewise.probe.policies.least_squares import Floats, non_negative
from servewise.records.columns import StepColumns
from servewise.steptime.estimator import Line, StepTime
from servewise.steptime.shape import StepShape, add_chunk

KNOTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
ROUNDS = 4
FEWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSteps:
    """An Estimator of the engine's steps, planning and sampling included.

    ``slopes`` are g's, [s/token] from each of KNOTS to the next (the last goes on), ``base_s`` is g(1). The others
    are seconds for each logit row, sequence, KV token read, pair and KV token of a chunk.
    """

    base_s: float
    slopes: tuple[float, ...]
    per_row_s: float
    per_sequence_s: float
    per_context_token_s: float
    per_pair_s: float
    per_chunk_token_s: float
    window_tokens: int | None = None
    name: str = "fitted to the engine's steps"
    caveats: tuple[Caveat, ...] = ()

    def seconds(self, shape: StepShape) -> float:
        """The step's time [s]."""
        windowed = self.window_tokens is not None
        context = shape.decode_windowed_tokens if windowed else shape.decode_context_tokens
        pairs = shape.prefill_windowed_pairs if windowed else shape.prefill_pairs
        chunk = shape.prefill_windowed_tokens if windowed else shape.prefill_context_tokens
        return (
            self._tokens(shape.tokens)
            + self.per_row_s * shape.logit_rows
            + self.per_sequence_s * shape.decode_sequences
            + self.per_context_token_s * context
            + self.per_pair_s * pairs
            + self.per_chunk_token_s * chunk
        )

    def _tokens(self, tokens: int) -> float:
        return self.base_s + float(np.dot(self.slopes, _ramps(tokens)))

    def step(self, shape: StepShape) -> StepTime:
        """The step's time; of what it is made is not known, so all of it counts as overhead."""
        whole = self.seconds(shape)
        return StepTime(0.0, 0.0, whole, 0.0, whole, 0.0, "overhead")

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """One line: the time is linear in the KV tokens read."""
        base = self._tokens(sequences) + (self.per_row_s + self.per_sequence_s) * sequences
        per_token = self.per_context_token_s
        return (Line(base, per_token) if self.window_tokens is None else Line(base, 0.0, per_token),)

    def slower(self, times: float) -> FittedSteps:
        """The same clock on a machine on which every step takes ``times`` as long."""
        names = ("base_s", "per_row_s", "per_sequence_s", "per_context_token_s", "per_pair_s", "per_chunk_token_s")
        scaled = {name: getattr(self, name) * times for name in names}
        return replace(self, slopes=tuple(each * times for each in self.slopes), **scaled)

    def to_json(self) -> dict[str, object]:
        """The coefficients, by name."""
        found: dict[str, object] = {"base_s": self.base_s, "knots_tokens": list(KNOTS), "slopes_s": list(self.slopes)}
        names = ("per_row_s", "per_sequence_s", "per_context_token_s", "per_pair_s", "per_chunk_token_s")
        return found | {name: getattr(self, name) for name in names}


def fit_steps(steps: Sequence[TimedShape], window_tokens: int | None = None) -> FittedSteps:
    """The clock that fits ``steps``; InputError for too few of them."""
    if len(steps) < FEWEST:
        raise InputError(f"{len(steps)} steps are too few to fit", where="calibration", hint=f"run at least {FEWEST}")
    windowed = window_tokens is not None
    matrix = np.array([_features(each.shape, windowed) for each in steps])
    seconds = np.array([each.seconds for each in steps])
    found, predicted = np.zeros(matrix.shape[1]), seconds
    for _ in range(ROUNDS):
        weights = 1.0 / np.maximum(predicted, 1e-9)
        found = non_negative(matrix * weights[:, None], seconds * weights)
        predicted = matrix @ found
    values = [float(each) for each in found]
    return FittedSteps(
        base_s=values[0],
        slopes=tuple(values[1 : 1 + len(KNOTS)]),
        per_row_s=values[-5],
        per_sequence_s=values[-4],
        per_context_token_s=values[-3],
        per_pair_s=values[-2],
        per_chunk_token_s=values[-1],
        window_tokens=window_tokens,
    )


def errors_of(clock: FittedSteps, steps: Sequence[TimedShape]) -> Mapping[str, float]:
    """How far the clock is off on ``steps``: median and p90 of |predicted / measured - 1|, and the ratio of sums."""
    predicted = np.array([clock.seconds(each.shape) for each in steps])
    measured = np.array([each.seconds for each in steps])
    off = np.abs(predicted / measured - 1.0)
    return {
        "steps": float(len(steps)),
        "median_error": float(np.median(off)),
        "p90_error": float(np.quantile(off, 0.9)),
        "sum_ratio": float(predicted.sum() / measured.sum()),
    }


def slowness(clock: FittedSteps, steps: StepColumns) -> float:
    """How many times as long the recorded steps took, all in all, as the clock says of them.

    Records do not hold a chunk's pairs: each step's prompt tokens count as one whole prompt.
    """
    columns = (steps.decode_sequences, steps.kv_tokens, steps.prefill_tokens, steps.active)
    predicted = sum(clock.seconds(_recorded(*row)) for row in zip(*columns, strict=True))
    return sum(steps.seconds) / predicted if predicted else 1.0


def _recorded(decodes: int, kv_tokens: int, prompt_tokens: int, active: int) -> StepShape:
    shape = StepShape(decodes, kv_tokens, kv_tokens, logit_rows=max(decodes, active))
    return add_chunk(shape, 0, prompt_tokens, ends_prompt=False) if prompt_tokens else shape


def _features(shape: StepShape, windowed: bool) -> list[float]:
    context = shape.decode_windowed_tokens if windowed else shape.decode_context_tokens
    pairs = shape.prefill_windowed_pairs if windowed else shape.prefill_pairs
    chunk = shape.prefill_windowed_tokens if windowed else shape.prefill_context_tokens
    return [1.0, *_ramps(shape.tokens), shape.logit_rows, shape.decode_sequences, context, pairs, chunk]


def _ramps(tokens: int) -> Floats:
    """How many of the tokens lie between each knot and the next."""
    knots = np.array(KNOTS, np.float64)
    return np.clip(tokens - knots, 0.0, np.append(np.diff(knots), np.inf))
