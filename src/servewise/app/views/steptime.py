"""How long does a step take, and where is the ridge?"""

from __future__ import annotations

from servewise.app.field import Field
from servewise.app.view import View
from servewise.app.views.common import CONTEXT, DEPLOYMENT, ESTIMATOR

PHASE = Field(
    name="phase",
    label="Phase",
    option="--phase",
    kind="choice",
    default="decode",
    choices=("decode", "prefill"),
    group="Load",
)
BATCHES = Field(
    name="batch",
    label="Batches",
    option="--batch",
    default="1,2,4,8,16,32,64,128,256",
    hint="Whole numbers with commas.",
    group="Load",
)

STEPTIME = View(
    name="steptime",
    title="Step time",
    question="How long does a step take, of what is it made, and from which batch on is it compute-bound?",
    command="steptime",
    fields=(*DEPLOYMENT, CONTEXT, BATCHES, PHASE, ESTIMATOR),
    hides=("precisions",),
)
