"""The formats that engines use where the user names none."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec
from servewise.precision import FORMATS, Precision


@dataclass(frozen=True, slots=True)
class Formats:
    """``weights`` None: as the checkpoint stores them."""

    weights: Precision | None
    kv: Precision
    activations: Precision


def engine_formats(
    model: ModelSpec,
    accelerator: Accelerator,
    *,
    weights: Precision | None = None,
    kv: Precision | None = None,
    activations: Precision | None = None,
) -> Formats:
    """What is given, and for the rest what engines do.

    A checkpoint of more than 16 bits is loaded and computed in bf16. Weights in fp8 (or nvfp4) meet activations
    quantised to the same format where the chip multiplies in it (W8A8, W4A4), else they are expanded and computed in
    16 bits (W8A16), as vLLM, SGLang and TensorRT-LLM do. The KV cache keeps 16 bits unless it is told otherwise.
    """
    half = FORMATS["bf16"] if model.dtype.bits > 16 else model.dtype
    loaded = weights or (FORMATS["bf16"] if model.weights.bits > 16 else None)
    stored = loaded or model.weights
    joins = stored.compute in ("fp8", "fp4") and stored.name != "mxfp4" and stored.compute in accelerator.peaks
    computed = activations or (FORMATS["fp8" if stored.compute == "fp8" else "nvfp4"] if joins else half)
    return Formats(weights=loaded, kv=kv or (computed if computed.bits >= 16 else half), activations=computed)
