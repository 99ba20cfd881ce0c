"""The time of a verification: one pass of the target over K + 1 tokens of each sequence."""

from __future__ import annotations

from servewise.steptime.estimator import Estimator
from servewise.steptime.shape import StepShape, add_verification


def verification_seconds(estimator: Estimator, sequences: int, new_tokens: int, context_tokens: int) -> float:
    """Seconds of the pass over ``new_tokens`` = K + 1 tokens of each sequence [s]; 1 is a plain decode step.

    ``context_tokens`` are the KV tokens of all sequences at its end. Never less than the plain step at that context:
    attention is priced as a prompt chunk's, whose kernel starts cheaper than decode's on some coefficients. Leaves out
    that MLA verifies in the absorbed form (3.4 times a chunk's FLOPs a pair), and engines that fall out of their CUDA
    graphs.
    """
    window = estimator.window_tokens
    windowed = context_tokens if window is None else min(context_tokens, sequences * window)
    plain_s = estimator.seconds(StepShape(sequences, context_tokens, windowed, logit_rows=sequences))
    if new_tokens == 1:
        return plain_s
    return max(
        plain_s, estimator.seconds(add_verification(StepShape(), sequences, new_tokens, context_tokens, windowed))
    )
