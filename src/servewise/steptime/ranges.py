"""Whether a step, or a load, lies where the coefficients were fitted."""

from __future__ import annotations

from servewise.caveats import Caveat
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.estimator import Estimator
from servewise.steptime.lookup import CURE, OUTSIDE
from servewise.steptime.shape import StepShape


def range_caveats(estimator: Estimator, shape: StepShape) -> tuple[Caveat, ...]:
    """A caveat for each quantity of ``shape`` outside the estimator's fitted range; none for one without a range."""
    valid: ValidRange | None = getattr(estimator, "valid_range", None)
    if valid is None:
        return ()
    quantities: list[tuple[str, float, tuple[int, int]]] = []
    if shape.decode_sequences:
        mean = shape.decode_context_tokens / shape.decode_sequences
        quantities.append(("sequences decoding at once", shape.decode_sequences, valid.decode_sequences))
        quantities.append(("tokens of context a sequence", mean, valid.context_tokens))
    if shape.prefill_tokens:
        quantities.append(("prompt tokens in a step", shape.prefill_tokens, valid.prefill_tokens))
    return tuple(
        Caveat(OUTSIDE, f"{value:,.0f} {what}: coefficients were fitted from {low:,} to {high:,}", CURE)
        for what, value, (low, high) in quantities
        if not low <= value <= high
    )


def under_way_caveats(estimator: Estimator, under_way: float, at: str, cure: str) -> tuple[Caveat, ...]:
    """A caveat where more requests are under way ``at`` some rate than the fit has seen; none without a range.

    By Little's law ``under_way`` is the rate times the mean time of a request.
    """
    valid: ValidRange | None = getattr(estimator, "valid_range", None)
    if valid is None or not under_way > valid.decode_sequences[1]:
        return ()
    most = valid.decode_sequences[1]
    message = f"about {under_way:.0f} requests are under way at {at}; calibrated on {most} at most"
    return (Caveat(OUTSIDE, message, cure),)
