"""How many bits: bytes and speed as computed, quality as measured."""

from __future__ import annotations

from servewise.app.field import Field
from servewise.app.view import View
from servewise.app.views.common import CONTEXT, DEPLOYMENT, ESTIMATOR

BATCH = Field(
    name="sequences",
    label="Batch (sequences in a step)",
    option="--batch",
    kind="range",
    default="8",
    numbers=(1, 256, 1),
    group="Load",
)
MEASURED = Field(
    name="quality",
    label="Measured quality",
    kind="files",
    accept=".json",
    hint="Answers of probe quantise or bench --quality-against, with --json: no arithmetic tells quality.",
    group="Quality",
)

BITS = View(
    name="bits",
    title="Bits",
    question="How many bits: what do they save in bytes and time, and what do they cost in quality?",
    command="steptime",
    fields=(*DEPLOYMENT, BATCH, CONTEXT, MEASURED, ESTIMATOR),
    hides=("ridge_batch", "ridge_batch_without_kv"),
    beside="quality",
)
