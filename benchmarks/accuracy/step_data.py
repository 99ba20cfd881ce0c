"""Measured step times as rows: deployment, step shape, seconds, and the kernels' parts where they are known.

Source: kernel tables of AIConfigurator 0.12 (Apache-2.0), summed by that program; the README beside the data says more.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.flops import pairs
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers, ModelSpec
from servewise.precision import FORMATS
from servewise.steptime.shape import StepShape, add_chunk, decode_shape, prefill_shape

DATA = Path(__file__).parents[1] / "data" / "step_times"
ACCELERATORS = {"a100_sxm": "a100-80gb", "h100_sxm": "h100-sxm", "h200_sxm": "h200", "l40s": "l40s"}
EXTRAPOLATED = ("Llama-2-7B", "vllm", 4)  # multi-head attention on vllm up to this TP has no measured kernels
LONGEST_PROMPT = 16_384  # the prefill tables end here

# hidden, layers, heads, KV heads, feed-forward width, vocabulary: the published config.json of each.
MODELS = {
    "Llama-2-7B": (4096, 32, 32, 32, 11008, 32000),
    "Llama-3.1-8B": (4096, 32, 32, 8, 14336, 128256),
    "Llama-3.1-70B": (8192, 80, 64, 8, 28672, 128256),
}

Phase = Literal["decode", "prefill", "mixed"]


@dataclass(frozen=True, slots=True)
class Key:
    """What was measured: system, engine and its version, model, ranks, number format."""

    accelerator: str
    engine: str
    version: str
    model: str
    tensor: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Row:
    """One measured step. ``parts`` are the seconds of attention, gemm, communication and other kernels."""

    key: Key
    phase: Phase
    shape: StepShape
    seconds: float
    parts: Mapping[str, float]


def rows() -> list[Row]:
    """Every usable row: it fits in memory, its attention was measured, nothing extrapolated."""
    return [*_decode(), *_prefill(), *_mixed()]


@cache
def deployment(key: Key) -> Deployment:
    """The deployment of that row; fp8 means weights, activations and KV cache, with embedding and head in bf16."""
    form = FORMATS[key.dtype]
    return Deployment(
        model=llama(key.model),
        accelerator=load_accelerator(key.accelerator),
        kv=form,
        activations=form,
        weights=form,
        engine=key.engine,
        parallelism=Parallelism(tensor=key.tensor),
    )


@cache
def llama(name: str) -> ModelSpec:
    """One of the three models that were measured."""
    hidden, layers, heads, kv_heads, width, vocab = MODELS[name]
    head_dim = hidden // heads
    attention = Attention(
        kind=AttentionKind.FULL,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        kv_values_per_token=2 * kv_heads * head_dim,
        score_width=hidden,
        value_width=hidden,
        parameters=2 * hidden * hidden + 2 * hidden * kv_heads * head_dim,
    )
    ffn = FeedForward(dense_parameters=3 * hidden * width)
    return ModelSpec(
        name=name,
        family="llama",
        layers=(Layers(count=layers, attention=attention, feed_forward=ffn, norm_parameters=2 * hidden),),
        hidden_size=hidden,
        vocab_size=vocab,
        embedding_parameters=vocab * hidden,
        head_parameters=vocab * hidden,
        final_norm_parameters=hidden,
        max_context_tokens=None,
        weights=FORMATS["bf16"],
        dtype=FORMATS["bf16"],
    )


def _read(name: str) -> Iterator[dict[str, str]]:
    with gzip.open(DATA / f"{name}.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            model, engine, most = EXTRAPOLATED
            if not (row["model"] == model and row["backend"] == engine and int(row["tp"]) <= most):
                yield row


def _key(row: Mapping[str, str]) -> Key:
    system = ACCELERATORS[row["system"]]
    return Key(system, row["backend"], row["version"], row["model"], int(row["tp"]), row["dtype"])


def _parts(row: Mapping[str, str]) -> dict[str, float]:
    names = {"attention": "attn_ms", "gemm": "gemm_ms", "communication": "comm_ms", "other": "other_ms"}
    return {name: float(row[column]) / 1e3 for name, column in names.items()}


def _decode() -> Iterator[Row]:
    for row in _read("decode"):
        if row["fits"] == "1" and row["attn_point"] == "measured":
            shape = decode_shape(int(row["batch"]), int(row["context"]))
            yield Row(_key(row), "decode", shape, float(row["decode_step_ms"]) / 1e3, _parts(row))


def _prefill() -> Iterator[Row]:
    for row in _read("prefill"):
        if row["fits"] == "1" and int(row["prompt_tokens"]) <= LONGEST_PROMPT:
            shape = prefill_shape(int(row["batch"]), int(row["prompt_tokens"]))
            yield Row(_key(row), "prefill", shape, float(row["prefill_ms"]) / 1e3, _parts(row))


def _mixed() -> Iterator[Row]:
    fitting = {(_key(row), int(row["batch"]), int(row["context"])) for row in _read("decode") if row["fits"] == "1"}
    for row in _read("mixed"):
        key, decoding, prompt = _key(row), int(row["decode_requests"]), int(row["decode_context"])
        if (key, max(1, decoding), prompt) in fitting:
            shape = mixed_shape(int(row["chunk_tokens"]), decoding, prompt)
            yield Row(key, "mixed", shape, float(row["step_ms"]) / 1e3, {})


def mixed_shape(chunk: int, decoding: int, prompt: int) -> StepShape:
    """``chunk`` prompt tokens beside ``decoding`` sequences at ``prompt`` tokens of context.

    As the source computes it: prompts are ``prompt`` tokens long; a chunk that holds several takes them whole, a
    smaller one is the average of the chunks that a prompt is cut into.
    """
    base = StepShape(decoding, decoding * prompt, decoding * prompt, logit_rows=decoding)
    if chunk >= prompt:
        return add_chunk(base, 0, prompt, times=chunk // prompt)
    pieces = math.ceil(prompt / chunk)
    mean_pairs = pairs(0, prompt) // pieces
    mean_end = sum(min(prompt, (i + 1) * chunk) for i in range(pieces)) // pieces
    return base._replace(
        prefill_sequences=1,
        prefill_tokens=chunk,
        prefill_context_tokens=mean_end,
        prefill_windowed_tokens=mean_end,
        prefill_pairs=mean_pairs,
        prefill_windowed_pairs=mean_pairs,
        logit_rows=decoding + 1,
    )
