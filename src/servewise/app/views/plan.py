"""Which deployment keeps the targets at the least cost?"""

from __future__ import annotations

from dataclasses import replace

from servewise.app.field import Field
from servewise.app.view import View
from servewise.app.views.common import ENGINES, ESTIMATOR, MODEL, REQUESTS, TPOT, TTFT, WORKLOAD
from servewise.app.views.own_traffic import FOLDS, SLIDERS, with_own_traffic

SEARCH = "Deployments to weigh"
CHIPS = Field(
    name="accelerators",
    label="Accelerators",
    option="--accelerators",
    kind="names",
    default="l4,a100-80gb,h100-sxm",
    suggest="accelerators",
    hint="Names with commas.",
    group=SEARCH,
)
COUNTS = Field(name="counts", label="Accelerators a replica", option="--counts", default="1,2,4", group=SEARCH)
WEIGHTS = Field(
    name="plan_weights",
    label="Weights",
    option="--weights",
    hint="E.g. bf16,fp8; empty: as stored.",
    group=SEARCH,
)
KV = Field(name="plan_kv", label="KV cache", option="--kv", hint="E.g. bf16,fp8.", group=SEARCH)
ENGINE = Field(
    name="engines",
    label="Engines",
    option="--engine",
    kind="many",
    default="vllm",
    choices=ENGINES[:4],
    words=("vLLM", "SGLang", "TensorRT-LLM", "llama.cpp"),
    group=SEARCH,
)
RATE = Field(
    name="carry",
    label="Requests/s to carry",
    option="--rate",
    default="8",
    hint="Empty: the cheapest token.",
    group="Traffic",
)

PLAN = View(
    name="plan",
    title="Cost and plan",
    question="Which deployment keeps the targets at the least cost, and why do the others lose?",
    command="plan",
    fields=(
        replace(MODEL, group="Model"),
        CHIPS,
        COUNTS,
        WEIGHTS,
        KV,
        ENGINE,
        WORKLOAD,
        REQUESTS,
        RATE,
        *SLIDERS,
        TTFT,
        TPOT,
        replace(ESTIMATOR, group=SEARCH),
    ),
    slow=True,
    auto=False,
    folds=FOLDS,
    rewrite=with_own_traffic,
)
