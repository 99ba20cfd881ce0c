"""A step by pipeline stages: what each stage takes of it, and the hop between two of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.deployment.shard import Stage, pipeline_stages
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.estimator import Estimator, Line, StepTime
from servewise.steptime.floor import Floor
from servewise.steptime.hop import Hop, hop_of
from servewise.steptime.ideal import IdealRoofline
from servewise.steptime.lines import summed
from servewise.steptime.link import LinkTime
from servewise.steptime.overlap import Hosted
from servewise.steptime.served import ServedRoofline
from servewise.steptime.shape import StepShape, decode_shape
from servewise.steptime.work import Experts


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages in their order, each an estimator of its own part of a step; ``hop`` None: hops take no time."""

    stages: tuple[Estimator, ...]
    hop: Hop | None = None

    def hop_s(self, tokens: int) -> float:
        """From one stage to the next with the activations of ``tokens`` new tokens [s]."""
        return self.hop.seconds(tokens) if self.hop is not None else 0.0

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """The lines of one decode step alone in the pipeline: all stages and the hops between them."""
        hops = Line((len(self.stages) - 1) * self.hop_s(sequences), 0.0)
        return summed([*(each.decode_lines(sequences) for each in self.stages), [hops]])

    def seconds(self, shape: StepShape) -> float:
        """One step alone in the pipeline: all stages and the hops between them [s]."""
        hops = (len(self.stages) - 1) * self.hop_s(shape.tokens)
        return sum(each.seconds(shape) for each in self.stages) + hops


def pipeline_of(deployment: Deployment, estimator: Estimator, over: LinkTime | None = None) -> Pipeline:
    """``estimator`` of all of ``deployment`` taken apart into its stages; with one stage, itself.

    Each stage holds its share of the layers, of every kind alike (as ``pipeline_stages`` splits them), the last one the
    head, and what the engine does once a step; a host that overlaps feeds the first stage. The ideal engine's hops
    take no time, as its messages do.
    """
    stages = list(pipeline_stages(deployment.model.layer_count, deployment.parallelism.pipeline))
    if len(stages) == 1:
        return Pipeline((estimator,))
    if isinstance(estimator, Hosted):
        found = pipeline_of(deployment, estimator.device, over)
        return replace(found, stages=(replace(estimator, device=found.stages[0]), *found.stages[1:]))
    if isinstance(estimator, IdealRoofline):
        return Pipeline(tuple(_ideal(estimator, each) for each in stages))
    whole, once_s = _unsplit(estimator)
    parts = tuple(StageShare(whole, each.share, once_s, each.last) for each in stages)
    return Pipeline(parts, hop_of(deployment, over))


def _unsplit(estimator: Estimator) -> tuple[Estimator, float]:
    """The estimator of the same layers without hops, and the seconds in it that a step takes once [s]."""
    if isinstance(estimator, ServedRoofline):
        kernels, _ = _unsplit(estimator.kernels)
        assert isinstance(kernels, CalibratedRoofline)
        return estimator.around(kernels), 0.0
    if not isinstance(estimator, CalibratedRoofline):
        return estimator, 0.0
    deployment = estimator.deployment
    alone = replace(deployment, parallelism=replace(deployment.parallelism, pipeline=1))
    found = CalibratedRoofline(alone, estimator.coefficients, estimator.caveats)
    return found, estimator.coefficients.step_overhead_s


@dataclass(frozen=True, slots=True)
class StageShare:
    """An Estimator of one stage: its ``share`` of what ``whole`` takes for the layers.

    ``last``: with all that the logits take on top, and ``once_s`` [s], what the engine does once a step, which is in
    ``whole`` too. The stages of a step sum to ``whole``.
    """

    whole: Estimator
    share: float
    once_s: float
    last: bool

    @property
    def name(self) -> str:
        """The whole's."""
        return self.whole.name

    @property
    def window_tokens(self) -> int | None:
        """The model's window."""
        return self.whole.window_tokens

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """The whole's."""
        return self.whole.caveats

    def seconds(self, shape: StepShape) -> float:
        """The stage's time for a step [s]."""
        layers = self.whole.seconds(shape._replace(logit_rows=0)) - self.once_s
        found = self.share * layers
        return found + (self.whole.seconds(shape) - layers) if self.last else found

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        """The share of the whole's lines; what the logits take does not depend on the context."""
        shape = decode_shape(sequences, 1, self.window_tokens)
        ends_s = self.whole.seconds(shape) - self.whole.seconds(shape._replace(logit_rows=0)) + self.once_s
        share, added = self.share, ends_s if self.last else 0.0
        return tuple(
            Line(share * (base - ends_s) + added, share * full, share * windowed)
            for base, full, windowed in self.whole.decode_lines(sequences)
        )

    def step(self, shape: StepShape) -> StepTime:
        """The stage's time with its parts: those of the whole, at the stage's part of the whole's time."""
        whole, seconds = self.whole.step(shape), self.seconds(shape)
        part = seconds / whole.step_s if whole.step_s else 0.0
        return StepTime(
            compute_s=part * whole.compute_s,
            memory_s=part * whole.memory_s,
            overhead_s=part * whole.overhead_s,
            communication_s=part * whole.communication_s,
            step_s=seconds,
            floor_s=part * whole.floor_s,
            bound=whole.bound,
        )


def _ideal(whole: IdealRoofline, stage: Stage) -> IdealRoofline:
    """The roofline of one stage's own bytes and FLOPs."""
    return IdealRoofline(_floor(whole.floor, stage), whole.window_tokens, whole.name, whole.caveats)


def _floor(floor: Floor, stage: Stage) -> Floor:
    share, first, last = stage.share, float(stage.first), float(stage.last)
    return Floor(
        dense_s=share * floor.dense_s,
        head_s=last * floor.head_s,
        experts=tuple(Experts(share * each.bytes, each.unread) for each in floor.experts),
        per_token_read=first * floor.per_token_read,
        per_kv_token=share * floor.per_kv_token,
        per_windowed_kv_token=share * floor.per_windowed_kv_token,
        per_sequence=share * floor.per_sequence,
        per_token_computed=share * floor.per_token_computed,
        per_row=last * floor.per_row,
        per_pair=share * floor.per_pair,
        per_windowed_pair=share * floor.per_windowed_pair,
        per_decode_pair=share * floor.per_decode_pair,
        per_windowed_decode_pair=share * floor.per_windowed_decode_pair,
    )
