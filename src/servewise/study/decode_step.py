"""The study's decode-step table: compute time, memory time and tokens per second by batch, and the ridge."""

from __future__ import annotations

from servewise.steptime.estimator import StepTime
from servewise.steptime.ideal import ideal_roofline
from servewise.steptime.ridge import ridge_batch_without_kv
from servewise.steptime.shape import decode_shape
from servewise.study import inputs, published
from servewise.study.agreement import at_most, exact, rounded
from servewise.study.row import StudyTable
from servewise.units import MILLISECOND


def decode_step_table() -> StudyTable:
    """The decode step at 2,048 tokens by batch, and what the study concludes from it."""
    steps = {batch: step(batch) for batch in published.DECODE_STEP}
    rows = [
        row
        for batch, (compute, memory, rate) in published.DECODE_STEP.items()
        for row in (
            rounded({"batch": batch}, "compute", compute, steps[batch].compute_s / MILLISECOND, "ms"),
            rounded({"batch": batch}, "memory", memory, steps[batch].memory_s / MILLISECOND, "ms"),
            rounded({"batch": batch}, "output rate", rate, batch / steps[batch].step_s, "tokens/s"),
        )
    ]
    largest = max(steps)
    slower = steps[largest].step_s / steps[1].step_s
    share = max(each.compute_s / each.step_s for each in steps.values())
    return StudyTable(
        name="decode_step",
        title=f"Decode step at {published.SEQUENCE_TOKENS:,} tokens: compute against memory",
        rows=(
            *rows,
            rounded({"batch": largest}, "output rate over batch 1", published.THROUGHPUT_GAIN_AT_32, largest / slower),
            rounded({"batch": largest}, "step time over batch 1", published.TIME_GAIN_AT_32, slower),
            at_most({"batch": "all"}, "largest compute share of a step", published.COMPUTE_SHARE_BELOW, share, 0.10),
            exact({"batch": "ridge"}, "ridge batch without KV cache", published.RIDGE_BATCH, ridge(), "sequences"),
        ),
        note="two terms: FLOPs over peak, bytes over bandwidth; FLOPs of attention scores left out, as in the study",
    )


def step(batch: int) -> StepTime:
    """One decode step of the study's model on its device."""
    return ideal_roofline(inputs.deployment()).step(decode_shape(batch, published.SEQUENCE_TOKENS))


def ridge() -> int:
    """The batch from which the weights alone would be compute-bound."""
    found = ridge_batch_without_kv(ideal_roofline(inputs.deployment()))
    assert found is not None, "without a cache, compute grows with the batch and memory does not"
    return found
