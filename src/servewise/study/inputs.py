"""The study's rounded inputs in the product's own types: its 13B model and its 80 GB device."""

from __future__ import annotations

from dataclasses import replace

from servewise.deployment.deployment import Deployment
from servewise.hardware.accelerator import Accelerator, Quantity, Standing
from servewise.modelspec.load import load_model
from servewise.modelspec.spec import FeedForward, Layers, ModelSpec
from servewise.precision import FORMATS, Precision

PARAMETERS = 13_000_000_000
MEMORY_BYTES, BANDWIDTH_BYTES_PER_S, PEAK_FLOPS = 80e9, 2e12, 312e12
SOURCE = "the study's assumed round figure"


def llama_2_13b() -> ModelSpec:
    """Llama 2 13B of the catalogue: true counts."""
    return load_model("llama-2-13b")


def model(kv_heads_divided_by: int = 1) -> ModelSpec:
    """Llama 2 13B as the study sees it: 13e9 parameters (26e9 bytes), all of them in matrices.

    KV bytes are the catalogue's, divided by ``kv_heads_divided_by`` for the study's hypothetical model. FLOPs are two
    a parameter; those of attention scores are left out, as the study does (they would add 0.17 to 2.67 ms at batch 32).
    """
    true = llama_2_13b()
    each = true.layers[0].attention
    attention = replace(
        each,
        kv_heads=each.kv_heads // kv_heads_divided_by,
        kv_values_per_token=each.kv_values_per_token // kv_heads_divided_by,
        score_width=0,
        value_width=0,
        parameters=0,
    )
    layers = Layers(
        count=true.layer_count,
        attention=attention,
        feed_forward=FeedForward(dense_parameters=PARAMETERS // true.layer_count),
    )
    return replace(
        true,
        name="llama-2-13b, rounded",
        layers=(layers,),
        vocab_size=0,
        embedding_parameters=0,
        head_parameters=0,
        final_norm_parameters=0,
        source=SOURCE,
    )


def accelerator() -> Accelerator:
    """The study's device: 80e9 bytes, 2e12 bytes/s, 312e12 FLOP/s in bf16."""
    return Accelerator(
        name="study-80gb",
        title="80 GB A100 class, the study's round figures",
        memory=_quantity(MEMORY_BYTES, "bytes"),
        bandwidth=_quantity(BANDWIDTH_BYTES_PER_S, "bytes/s"),
        peaks={"bf16": _quantity(PEAK_FLOPS, "FLOP/s")},
    )


def deployment(kv: str = "bf16", weights: str = "bf16", kv_heads_divided_by: int = 1) -> Deployment:
    """The study's model on its device, nothing reserved."""
    return Deployment(
        model=model(kv_heads_divided_by),
        accelerator=accelerator(),
        kv=_precision(kv),
        activations=_precision("bf16"),
        weights=_precision(weights),
        engine="ideal",
    )


def _precision(name: str) -> Precision:
    return FORMATS[name]


def _quantity(value: float, unit: str, standing: Standing = "assumed") -> Quantity:
    return Quantity(value, unit, SOURCE, "", standing)
