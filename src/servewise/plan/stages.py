"""A server's pipeline stages, and the least that a step of them may hold."""

from __future__ import annotations

from servewise.plan.server import Server
from servewise.steptime.estimator import Estimator
from servewise.steptime.ideal import IdealRoofline
from servewise.steptime.pipeline import Pipeline, pipeline_of
from servewise.steptime.shape import StepShape
from servewise.steptime.table import TableEstimator


def stages_of(server: Server) -> Pipeline:
    """The stages of ``server`` as bounds may count with them; of a model that is not split, all of it as one."""
    deployment, clock = server.deployment, never_falling(server.estimator)
    if deployment is None or deployment.parallelism.pipeline == 1:
        return Pipeline((clock,))
    return pipeline_of(deployment, clock)


def never_falling(estimator: Estimator) -> Estimator:
    """``estimator``; of measured steps, which may fall where more is computed, the floor that they are held above."""
    if isinstance(estimator, TableEstimator):
        return IdealRoofline(estimator.floor, estimator.window_tokens, estimator.name, estimator.caveats)
    return estimator


def least_shape(
    tokens: int, pairs: int = 0, decodes: int = 0, context_tokens: int = 0, shortest_tokens: int = 0
) -> StepShape:
    """A step with no more of anything than any other of so many new prompt tokens and decoding sequences.

    Each prompt token is in reach of itself alone, or all of as many ``pairs`` as given; the sequences read
    ``context_tokens`` in all, none less than ``shortest_tokens``, of which within a window only so much is taken.
    """
    inside = min(context_tokens, decodes * shortest_tokens)
    return StepShape(
        decode_sequences=decodes,
        decode_context_tokens=context_tokens,
        decode_windowed_tokens=inside,
        prefill_sequences=1 if tokens else 0,
        prefill_tokens=tokens,
        prefill_context_tokens=tokens,
        prefill_windowed_tokens=tokens,
        prefill_pairs=max(tokens, pairs),
        prefill_windowed_pairs=tokens,
        logit_rows=decodes,
    )
