"""How long do requests wait and run, policy by policy, and where does the server saturate?"""

from __future__ import annotations

from servewise.app.field import Field
from servewise.app.view import View
from servewise.app.views.common import DEPLOYMENT, ESTIMATOR, REQUESTS, TPOT, TTFT, WORKLOAD
from servewise.app.views.own_traffic import FOLDS, SLIDERS, with_own_traffic

POLICIES = ("vllm", "sglang", "trtllm", "llamacpp", "continuous", "dynamic", "static")
POLICY_WORDS = ("vLLM", "SGLang", "TensorRT-LLM", "llama.cpp", "continuous", "dynamic (window)", "static")
POLICY = Field(
    name="policy",
    label="Policies",
    option="--policy",
    kind="many",
    default="vllm,static",
    choices=POLICIES,
    words=POLICY_WORDS,
    group="Policies",
)
RATES = Field(
    name="rate",
    label="Arrival rates (requests/s)",
    option="--rate",
    default="1,2,4,8,16,24",
    hint="With commas; empty: the traffic's own.",
    group="Traffic",
)
SEEDS = Field(
    name="seeds",
    label="Seeds",
    option="--seeds",
    kind="number",
    default="2",
    hint="A trace is the same for all.",
    group="Traffic",
    more=True,
)
PREFIX_CACHE = Field(
    name="prefix_cache",
    label="Prefix cache (plain policies)",
    option="--prefix-cache",
    kind="flag",
    group="Policies",
    more=True,
)
SLOTS = Field(
    name="slots",
    label="Slots (plain policies)",
    option="--slots",
    kind="number",
    group="Policies",
    more=True,
)
WINDOW = Field(
    name="window",
    label="Window of dynamic batching",
    option="--window",
    hint="E.g. 50ms.",
    group="Policies",
    more=True,
)


TRAFFIC = View(
    name="traffic",
    title="Traffic",
    question="How long do requests wait and run under each policy, and from which rate on does the server saturate?",
    command="simulate",
    fields=(
        *DEPLOYMENT,
        WORKLOAD,
        REQUESTS,
        RATES,
        SEEDS,
        *SLIDERS,
        POLICY,
        PREFIX_CACHE,
        SLOTS,
        WINDOW,
        TTFT,
        TPOT,
        ESTIMATOR,
    ),
    slow=True,
    folds=FOLDS,
    rewrite=with_own_traffic,
)
