"""Does speculative decoding pay, by draft length, acceptance and batch?"""

from __future__ import annotations

from servewise.app.field import Field
from servewise.app.view import View
from servewise.app.views.common import CONTEXT, DEPLOYMENT, ESTIMATOR

GROUP = "Speculation"
DRAFT = Field(
    name="draft",
    label="Draft model",
    option="--draft",
    kind="name",
    default="llama-3.2-1b",
    suggest="models",
    accept=".json",
    group=GROUP,
)
ACCEPTANCE = Field(
    name="acceptance",
    label="Acceptance a draft token",
    option="--acceptance",
    kind="range",
    default="0.7",
    numbers=(0.05, 0.99, 0.01),
    hint="Measured on your own traffic, else a guess.",
    group=GROUP,
)
LONGEST = Field(
    name="max_k",
    label="Draft tokens at most",
    option="--max-k",
    kind="range",
    default="8",
    numbers=(1, 16, 1),
    group=GROUP,
)
BATCHES = Field(
    name="batch",
    label="Batches",
    option="--batch",
    default="1,4,16,64",
    hint="Whole numbers with commas.",
    group=GROUP,
)

SPECULATION = View(
    name="speculation",
    title="Speculation",
    question="Does speculative decoding pay, with how many draft tokens, and what is left of it at large batch?",
    command="speculate",
    fields=(*DEPLOYMENT, DRAFT, ACCEPTANCE, LONGEST, BATCHES, CONTEXT, ESTIMATOR),
)
