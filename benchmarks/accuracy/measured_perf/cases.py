"""A published figure as a deployment and the seconds that it says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.accuracy.measured_perf.data import DECODE, GENERATION, PREFILL, Row, left_out
from benchmarks.accuracy.measured_perf.names import ACCELERATORS, HALF, model, stored
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.precision import FORMATS, Precision

ENGINES = {"llama.cpp": "llamacpp", "tensorrt-llm": "trtllm", "vllm": "vllm"}
STAGES = {"llama.cpp", "exllama"}  # they give each accelerator some of the layers
EAGER = {"splitwise", "mlc-llm-perf-bench"}  # vLLM of 2023, before it had CUDA graphs (0.2.7)


@dataclass(frozen=True)
class Case:
    """``seconds`` measured: of a decode step, of prompts, or of a whole static batch (``phase``)."""

    row: Row
    where: Deployment
    phase: str
    batch: int
    prompt_tokens: int  # of a prompt; for decode the tokens before the mean step
    output_tokens: int
    seconds: float

    @property
    def engine(self) -> str:
        """The engine, without its version."""
        return engine_of(self.row.engine)

    @property
    def group(self) -> str:
        """Phase, and whether one sequence or several."""
        return f"{self.phase}, {'one sequence' if self.batch == 1 else 'batches'}"


def engine_of(name: str) -> str:
    """The engine of a source's name for it.

    >>> engine_of("TensorRT-LLM 0.5"), engine_of("Llama.cpp")
    ('tensorrt-llm', 'llama.cpp')
    """
    return re.split(r"[ (]", name.lower().replace("mlc llm", "mlc-llm"))[0]


def case(row: Row) -> Case | str:
    """The case of a figure, or why it has none."""
    reason = left_out(row)
    if reason:
        return reason
    where = deployment(row)
    if isinstance(where, str):
        return where
    if row.metric in GENERATION | {"output_tokens_per_s"}:
        phase = "whole batch"
    else:
        phase = "decode" if row.metric in DECODE else "prefill"
    assert row.batch is not None
    context = row.prompt_tokens + row.output_tokens // 2 if phase == "decode" else row.prompt_tokens
    return Case(row, where, phase, row.batch, context, row.output_tokens, _seconds(row))


def deployment(row: Row) -> Deployment | str:
    """Where the figure was measured, or what of it is not known."""
    accelerator, spec = ACCELERATORS.get(row.hardware), model(row.model)
    if accelerator is None:
        return f"accelerator not in the catalogue: {row.hardware or 'not stated'}"
    if spec is None:
        return f"model not known: {row.model or 'not stated'}"
    kept = stored(spec, row.weights, row.engine)
    if kept is None:
        return f"format not known: {row.weights}"
    engine = engine_of(row.engine)
    return Deployment(
        model=kept,
        accelerator=load_accelerator(accelerator),
        kv=FORMATS["fp8"] if row.kv.startswith("fp8") else HALF,
        activations=activations(kept.weights),
        engine=ENGINES.get(engine, engine),
        parallelism=_parallelism(row, engine),
        limits=Limits(cuda_graphs=not (engine == "vllm" and row.source in EAGER)),
    )


def activations(weights: Precision) -> Precision:
    return FORMATS["fp8"] if weights.name == "fp8" else FORMATS["nvfp4"] if weights.name == "nvfp4" else HALF


def _parallelism(row: Row, engine: str) -> Parallelism:
    if engine in STAGES:
        return Parallelism(pipeline=row.accelerators)
    shared = re.search(r"DCP(\d+)", row.parallelism)
    return Parallelism(tensor=row.accelerators, decode_context=int(shared[1]) if shared else 1)


def _seconds(row: Row) -> float:
    value, batch = float(row.value), row.batch or 1
    if row.metric.endswith("_ms") or row.metric == "decode_ms_per_step":
        return value / 1e3
    if row.metric == "prefill_tokens_per_s":
        return batch * row.prompt_tokens / value
    if row.metric in DECODE:
        return batch / value
    whole = value * (row.accelerators if row.metric in GENERATION else 1)
    return batch * row.output_tokens / whole


__all__ = ["PREFILL", "Case", "case", "deployment", "engine_of"]
