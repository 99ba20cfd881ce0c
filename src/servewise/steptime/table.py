"""A table-backed estimator: decode steps between measured ones, everything else by the calibrated roofline."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise, product

from servewise.caveats import Caveat
from servewise.steptime.calibrated import MEMO_LIMIT, CalibratedRoofline
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.estimator import Line, StepTime
from servewise.steptime.expert_parallel import measured_caveats
from servewise.steptime.lines import envelope, largest
from servewise.steptime.shape import StepShape, decode_shape, prefill_shape
from servewise.steptime.table_file import MeasuredStep

BENT = 0.05  # measured steps that bend down by more than this are told
NO_PREFILL = Caveat(
    "prefill-not-measured",
    "the table has no prefill steps: those of the calibrated roofline are used",
    "add rows with phase prefill to the table",
)


class TableEstimator:
    """An Estimator from measured steps.

    Decode: for each measured batch, straight lines through its steps by KV tokens read in all (its lower convex hull,
    since a step is a maximum of lines); between batches, the weighted mean of the two. Prompt chunks add what
    the calibrated roofline says they add, times the mean ratio of measured to calibrated prefill steps. Never
    below the floor.
    """

    def __init__(self, steps: Sequence[MeasuredStep], calibrated: CalibratedRoofline, title: str) -> None:
        self.name = f"table ({title})"
        self.window_tokens = calibrated.window_tokens
        self.floor = calibrated.floor
        self._calibrated = calibrated
        decode = [step for step in steps if step.phase == "decode"]
        prefill = [step for step in steps if step.phase == "prefill"]
        self._batches = sorted({step.batch for step in decode})
        self._hulls = [_hull(_points(decode, batch)) for batch in self._batches]
        self._known: dict[int, tuple[Line, ...]] = {}
        self._growth_s = self._growth(min(x for x, _ in _points(decode, self._batches[-1])))
        self._prefill_ratio = self._ratio(prefill)
        kernels = () if prefill else (NO_PREFILL, *calibrated.caveats)
        self.caveats = (*self._bends(decode), *kernels, *measured_caveats(calibrated.deployment))
        self.valid_range = _range(decode, prefill, calibrated)

    def seconds(self, shape: StepShape) -> float:
        """The step's time [s]."""
        floor = self.floor.seconds(shape)
        if not shape.decode_sequences:
            return max(floor, self._calibrated.seconds(shape) * self._prefill_ratio)
        decode = self._decode(shape)
        if not shape.prefill_tokens:
            return max(floor, decode)
        alone = shape[:3]
        added = self._calibrated.seconds(shape) - self._calibrated.seconds(StepShape(*alone, logit_rows=alone[0]))
        return max(floor, decode + max(0.0, added) * self._prefill_ratio)

    def step(self, shape: StepShape) -> StepTime:
        """The step's time; compute and memory are the floor's, what remains counts as overhead."""
        compute, memory = self.floor.compute_s(shape), self.floor.memory_s(shape)
        whole, floor = self.seconds(shape), max(compute, memory)
        overhead = whole - floor
        bound = "overhead" if overhead > floor else "compute" if compute > memory else "memory"
        return StepTime(compute, memory, overhead, 0.0, whole, floor, bound)

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """The lines of ``sequences``, with the floor's."""
        known = self._known.get(sequences)
        if known is None:
            if len(self._known) >= MEMO_LIMIT:
                self._known.clear()
            known = self._known[sequences] = (*self._lines(sequences), *self.floor.decode_lines(sequences))
        return known

    def _decode(self, shape: StepShape) -> float:
        lines = self.decode_lines(shape.decode_sequences)
        return largest(lines, shape.decode_context_tokens, shape.decode_windowed_tokens)

    def _lines(self, sequences: int) -> Iterable[Line]:
        batches = self._batches
        at = bisect_left(batches, sequences)
        if at == 0:
            return self._hulls[0]
        if at == len(batches):
            more = self._growth_s * (sequences - batches[-1])
            return [Line(line.base_s + more, line.per_context_token_s) for line in self._hulls[-1]]
        share = (sequences - batches[at - 1]) / (batches[at] - batches[at - 1])
        pairs = product(self._hulls[at - 1], self._hulls[at])
        return envelope([_between(one, other, share) for one, other in pairs])

    def _growth(self, least_tokens: float) -> float:
        """Seconds that a sequence more adds beyond the largest measured batch, at equal KV tokens."""
        if len(self._batches) < 2:
            return 0.0
        gap_s = largest(self._hulls[-1], least_tokens, 0.0) - largest(self._hulls[-2], least_tokens, 0.0)
        return max(0.0, gap_s) / (self._batches[-1] - self._batches[-2])

    def _ratio(self, prefill: Sequence[MeasuredStep]) -> float:
        """The geometric mean of measured / calibrated prefill steps; 1 without any."""
        logs = [math.log(step.step_s / self._calibrated.seconds(self._prompt(step))) for step in prefill]
        return math.exp(sum(logs) / len(logs)) if logs else 1.0

    def _prompt(self, step: MeasuredStep) -> StepShape:
        return prefill_shape(step.batch, step.context_tokens, self.window_tokens)

    def _bends(self, decode: Sequence[MeasuredStep]) -> tuple[Caveat, ...]:
        gaps = (abs(self.seconds(self._decoding(step)) / step.step_s - 1.0) for step in decode)
        widest = max(gaps)
        if widest <= BENT:
            return ()
        message = f"measured decode steps differ from straight lines, or from the floor, by up to {widest:.0%}"
        return (Caveat("table-not-convex", message, "measure again, or give fewer contexts a batch"),)

    def _decoding(self, step: MeasuredStep) -> StepShape:
        return decode_shape(step.batch, step.context_tokens, self.window_tokens)


def _points(decode: Iterable[MeasuredStep], batch: int) -> list[tuple[float, float]]:
    return [(float(batch * step.context_tokens), step.step_s) for step in decode if step.batch == batch]


def _hull(points: Sequence[tuple[float, float]]) -> tuple[Line, ...]:
    """The lines of the lower convex hull of ``points`` (in order), none of them falling."""
    hull: list[tuple[float, float]] = []
    for point in points:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-2], point):
            hull.pop()
        hull.append(point)
    rising = [(one, _slope(one, other)) for one, other in pairwise(hull)]
    lines = [Line(y - slope * x, slope) for (x, y), slope in rising if slope > 0]
    lowest = min(y for _, y in points)
    return (Line(lowest, 0.0), *lines)


def _slope(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[1] - one[1]) / (other[0] - one[0])


def _between(one: Line, other: Line, share: float) -> Line:
    return Line(
        one.base_s + share * (other.base_s - one.base_s),
        one.per_context_token_s + share * (other.per_context_token_s - one.per_context_token_s),
    )


def _range(
    decode: Sequence[MeasuredStep], prefill: Sequence[MeasuredStep], calibrated: CalibratedRoofline
) -> ValidRange | None:
    batches, contexts = [step.batch for step in decode], [step.context_tokens for step in decode]
    fitted = calibrated.valid_range
    tensor = calibrated.deployment.parallelism.tensor
    prompts = [step.batch * step.context_tokens for step in prefill]
    if not prompts and fitted is None:
        return None
    return ValidRange(
        decode_sequences=(min(batches), max(batches)),
        context_tokens=(min(contexts), max(contexts)),
        prefill_tokens=(min(prompts), max(prompts)) if prompts else fitted.prefill_tokens if fitted else (1, 1),
        tensor=(tensor, tensor),
    )
