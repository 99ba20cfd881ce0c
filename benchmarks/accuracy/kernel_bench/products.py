"""Matrix products and small kernels of one layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from benchmarks.accuracy.kernel_bench.rows import CARDS, Judged, Kernel, bucket
from servewise.deployment.deployment import Deployment
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS
from servewise.steptime.coefficients import Coefficients
from servewise.steptime.lookup import coefficients_for

ROWS = (256, 4096)
HALF = 2  # bytes a value


class Shape(NamedTuple):
    """Hidden size, query and KV heads, feed-forward width, and whether that is gated."""

    hidden: int
    heads: int
    kv_heads: int
    width: int
    gated: bool = True


# The published config.json of each.
SHAPES = {
    "Qwen/Qwen-72B": Shape(8192, 64, 64, 24576),
    "codellama/CodeLlama-34b-Instruct-hf": Shape(8192, 64, 8, 22016),
    "internlm/internlm-20b": Shape(5120, 40, 40, 13824),
    "meta-llama/Llama-2-70b-hf": Shape(8192, 64, 8, 28672),
    "meta-llama/Llama-2-7b-hf": Shape(4096, 32, 32, 11008),
    "meta-llama/Meta-Llama-3-70B": Shape(8192, 64, 8, 28672),
    "meta-llama/Meta-Llama-3-8B": Shape(4096, 32, 8, 14336),
    "microsoft/phi-2": Shape(2560, 32, 32, 10240, gated=False),
}
PRODUCTS = {"layer_op:attn_pre_proj", "layer_op:attn_post_proj", "layer_op:mlp_up_proj", "layer_op:mlp_down_proj"}
SMALL = {
    "layer_op:input_layernorm",
    "layer_op:post_attention_layernorm",
    "layer_op:attn_rope",
    "layer_op:mlp_act",
    "layer_op:add",
}


@cache
def coefficients(card: str, form: str) -> tuple[Coefficients, float, float]:
    """vLLM's coefficients on a card, with its bandwidth [bytes/s] and its peak [FLOP/s] in ``form``."""
    accelerator, stored = load_accelerator(CARDS[card]), FORMATS[form]
    where = Deployment(
        model=load_model("llama-3-8b"),
        accelerator=accelerator,
        kv=FORMATS["bf16"],
        activations=stored,
        weights=stored,
        engine="vllm",
    )
    return coefficients_for(where).coefficients, accelerator.bandwidth_bytes_per_s, accelerator.peak_flops(form)


def product_s(card: str, form: str, rows: int, inner: int, outer: float) -> float:
    """One product of ``rows`` x ``inner`` with ``inner`` x ``outer`` [s]."""
    known, bandwidth, peak = coefficients(card, form)
    stored = FORMATS[form].bits / 8
    moved = rows * (inner * stored + outer * HALF)
    return known.gemm.seconds(inner * outer * stored / bandwidth, moved / bandwidth, 2.0 * rows * inner * outer / peak)


def judge_products(rows: Iterable[Kernel]) -> Iterator[Judged]:
    """fp8 products of plain sizes, and the four products of a layer."""
    for each in rows:
        if each.kind == "gemm":
            predicted = product_s(each.card, "fp8", each.rows, each.inner, each.outer)
            yield Judged("product, fp8", each.card, _size(each.rows), each.seconds, predicted)
        elif each.kind in PRODUCTS:
            inner, outer = _matrix(each)
            predicted = product_s(each.card, "fp16", each.rows, inner, outer)
            yield Judged("product, fp16", each.card, _size(each.rows), each.seconds, predicted)


def _matrix(each: Kernel) -> tuple[int, float]:
    shape, tensor = SHAPES[each.model], each.tensor
    head = shape.hidden // shape.heads
    width = shape.width // tensor
    return {
        "layer_op:attn_pre_proj": (shape.hidden, head * (shape.heads + 2 * shape.kv_heads) / tensor),
        "layer_op:attn_post_proj": (shape.hidden // tensor, shape.hidden),
        "layer_op:mlp_up_proj": (shape.hidden, width * (2 if shape.gated else 1)),
        "layer_op:mlp_down_proj": (width, shape.hidden),
    }[each.kind]


def judge_small(rows: Iterable[Kernel]) -> Iterator[Judged]:
    """Norms, rotary positions, activation and residual of one layer together."""
    layers: dict[tuple[str, str, int, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in rows:
        if each.kind in SMALL:
            layers[each.card, each.model, each.tensor, each.rows][each.kind].append(each.seconds)
    for (card, model, tensor, tokens), parts in layers.items():
        measured = sum(sum(times) / len(times) for times in parts.values())
        known, bandwidth, _ = coefficients(card, "fp16")
        small, shape = known.small, SHAPES[model]
        moved = small.hidden_bytes * shape.hidden + small.width_bytes * shape.width / tensor
        yield Judged(
            "small kernels of a layer", card, _size(tokens), measured, small.layer_s + moved * tokens / bandwidth
        )


def _size(rows: int) -> str:
    return bucket(rows, ROWS) + " rows"
