"""How long do requests wait and run, policy by policy, and where does the server saturate?"""

from __future__ import annotations

from servewise.app.field import Field, number
from servewise.app.view import Files, View
from servewise.app.views.common import DEPLOYMENT, ESTIMATOR, REQUESTS, TPOT, TTFT, WORKLOAD

OWN = "own"
POLICIES = ("vllm", "sglang", "trtllm", "llamacpp", "continuous", "dynamic", "static")
POLICY_WORDS = ("vLLM", "SGLang", "TensorRT-LLM", "llama.cpp", "continuous", "dynamic (window)", "static")
SLIDERS = (
    Field(
        name="prompt",
        label="Median prompt (tokens)",
        kind="range",
        default="600",
        numbers=(16, 8192, 16),
        group="Own traffic",
    ),
    Field(
        name="output",
        label="Median answer (tokens)",
        kind="range",
        default="150",
        numbers=(8, 2048, 8),
        group="Own traffic",
    ),
    Field(
        name="spread",
        label="Spread of lengths (sigma of the logarithm)",
        kind="range",
        default="0.8",
        numbers=(0.1, 2, 0.1),
        group="Own traffic",
    ),
    Field(
        name="burst",
        label="Burstiness of arrivals (CV; 1: Poisson)",
        kind="range",
        default="1",
        numbers=(0.2, 5, 0.2),
        group="Own traffic",
    ),
    Field(
        name="shared",
        label="Common system prompt (tokens)",
        kind="range",
        default="0",
        numbers=(0, 4096, 64),
        group="Own traffic",
    ),
)
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

_FILE = """\
requests = 2000

[arrivals]
kind = "gamma"
rate_per_s = 1.0
cv = {burst}

[prompt_tokens]
kind = "lognormal"
median = {prompt}
sigma = {spread}

[output_tokens]
kind = "lognormal"
median = {output}
sigma = {spread}
"""
_PREFIX = """
[prefix]
groups = 1
tokens = {shared}
"""


def with_own_traffic(given: dict[str, str], files: Files) -> dict[str, str]:
    """``given`` with the sliders as a workload file, where the traffic is one's own."""
    if given["workload"] != OWN:
        return given
    numbers = {field.name: number(given[field.name], field) for field in SLIDERS}
    text = _FILE + (_PREFIX if float(numbers["shared"]) > 0 else "")
    return given | {"workload": files("traffic.toml", text.format(**numbers))}


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
    folds=("Own traffic", "workload", OWN),
    rewrite=with_own_traffic,
)
