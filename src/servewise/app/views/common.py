"""Fields that several views share: the same name in the address, so that a value goes along from view to view."""

from __future__ import annotations

from dataclasses import replace

from servewise.app.field import Field

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp", "ideal")
ENGINE_WORDS = ("vLLM", "SGLang", "TensorRT-LLM", "llama.cpp", "ideal (no overhead)")
FORMATS = ("", "bf16", "fp16", "fp8", "int8", "int6", "int5", "int4", "int3", "nvfp4", "mxfp4")
AS_STORED = ("as stored", *FORMATS[1:])
DEFAULT_MODEL, DEFAULT_ACCELERATOR = "llama-3.1-8b", "h100-sxm"

MODEL = Field(
    name="model",
    label="Model",
    argument=True,
    kind="name",
    default=DEFAULT_MODEL,
    suggest="models",
    accept=".json",
    hint="A name of the catalogue, or its config.json pasted or uploaded.",
)
ACCELERATOR = Field(
    name="accelerator",
    label="Accelerator",
    option="--accelerator",
    kind="name",
    default=DEFAULT_ACCELERATOR,
    suggest="accelerators",
    accept=".toml",
)
COUNT = Field(
    name="count",
    label="How many",
    option="--count",
    kind="number",
    hint="In all; tensor parallel unless TP says less.",
)
TP = Field(name="tp", label="Tensor parallel", option="--tp", kind="number", more=True)
PP = Field(name="pp", label="Pipeline stages", option="--pp", kind="number", more=True)
EP = Field(name="ep", label="Experts spread over all", option="--ep", kind="flag", more=True)
WEIGHTS = Field(name="weights", label="Weights", option="--weights", kind="choice", choices=FORMATS, words=AS_STORED)
KV = Field(
    name="kv",
    label="KV cache",
    option="--kv",
    kind="choice",
    choices=("", "fp8", "int8", "int4"),
    words=("16 bits", "fp8", "int8", "int4"),
)
ENGINE = Field(
    name="engine",
    label="Engine",
    option="--engine",
    kind="choice",
    default="vllm",
    choices=ENGINES,
    words=ENGINE_WORDS,
)
MEMORY_SHARE = Field(
    name="memory_utilization",
    label="Share of memory the engine may take",
    option="--memory-utilization",
    hint="0 to 1; empty: the engine's own.",
    more=True,
)
MAX_BATCHED = Field(
    name="max_batched_tokens",
    label="New tokens a step at most",
    option="--max-batched-tokens",
    kind="number",
    more=True,
)
MAX_SEQUENCES = Field(
    name="max_sequences",
    label="Sequences at once at most",
    option="--max-sequences",
    kind="number",
    more=True,
)
MAX_CONTEXT = Field(
    name="max_context",
    label="Longest context served (tokens)",
    option="--max-context",
    kind="number",
    more=True,
)
PEAK = Field(name="peak_flops", label="Own peak", option="--peak-flops", hint="Dense, e.g. 312T FLOP/s.", more=True)
BANDWIDTH = Field(name="bandwidth", label="Own bandwidth", option="--bandwidth", hint="E.g. 2TB/s.", more=True)
MEMORY = Field(name="memory", label="Own memory", option="--memory", hint="E.g. 80GB.", more=True)
DEPLOYMENT = (
    MODEL, ACCELERATOR, COUNT, WEIGHTS, KV, ENGINE, TP, PP, EP, MEMORY_SHARE, MAX_BATCHED, MAX_SEQUENCES, MAX_CONTEXT,
    PEAK, BANDWIDTH, MEMORY,
)  # fmt: skip

CONTEXT = Field(
    name="context",
    label="Context (tokens a sequence)",
    option="--context",
    kind="number",
    default="2048",
    group="Load",
)
ESTIMATOR = Field(
    name="estimator",
    label="Step times",
    option="--estimator",
    kind="choice",
    choices=("", "calibrated", "ideal"),
    words=("the usual", "measured coefficients", "ideal roofline"),
    more=True,
)
PRESETS = ("chat", "chat-multiturn", "rag", "reasoning", "summarise", "azure-conv", "azure-code", "mooncake-conv")
WORKLOAD = Field(
    name="workload",
    label="Traffic",
    option="--workload",
    kind="name",
    default="azure-conv",
    suggest="workloads",
    accept=".csv,.jsonl,.json,.toml,.gz",
    hint="A preset, 'own' for the sliders below, or an uploaded trace.",
    group="Traffic",
)
REQUESTS = Field(
    name="requests",
    label="Requests",
    option="--requests",
    kind="number",
    default="200",
    hint="More take longer and tell more.",
    group="Traffic",
)
TTFT = Field(
    name="ttft",
    label="TTFT p95 at most",
    option="--slo",
    form="ttft_p95<={}",
    default="1s",
    hint="E.g. 500ms; empty: no target.",
    group="Targets",
)
TPOT = replace(TTFT, name="tpot", label="TPOT p95 at most", form="tpot_p95<={}", default="50ms", hint="E.g. 30ms.")
