"""What the sources call their accelerators, models and formats, in our names."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

from benchmarks.accuracy.measured_perf.data import DATA
from servewise.modelspec.hf_config import parse_config
from servewise.modelspec.load import load_model
from servewise.modelspec.spec import ModelSpec, WeightPart
from servewise.precision import FORMATS, Precision

ACCELERATORS = {
    "A100-80GB SXM (330W cap, ~1700 GB/s empirical peak)": "a100-80gb",
    "a100-80gb": "a100-80gb",
    "A100 SXM 80GB": "a100-80gb",
    "A100 PCIe 80GB": "a100-80gb-pcie",
    "A100 (PCIe)": "a100-80gb-pcie",
    "H100 80GB": "h100-sxm",
    "H100 SXM": "h100-sxm",
    "H100": "h100-sxm",
    "H100 PCIe 80GB": "h100-pcie",
    "MI250X one GCD": "mi250x",
    "A10G (PCIe)": "a10g",
    "A40 48GB": "a40",
    "L40S 48GB": "l40s",
    "L40S": "l40s",
    "3080 10GB": "rtx-3080",
    "3090 24GB": "rtx-3090",
    "RTX 3090": "rtx-3090",
    "RTX 3090 Ti": "rtx-3090-ti",
    "RTX 3090 Ti (PCIe)": "rtx-3090-ti",
    "4080 16GB": "rtx-4080",
    "4090 24GB": "rtx-4090",
    "RTX 4090": "rtx-4090",
    "RTX 4090 (PCIe)": "rtx-4090",
    "RTX 5090": "rtx-5090",
    "RTX 4000 Ada 20GB": "rtx-4000-ada",
    "RTX 5000 Ada 32GB": "rtx-5000-ada",
    "RTX 6000 Ada 48GB": "rtx-6000-ada",
    "RTX PRO 6000 Blackwell": "rtx-pro-6000",
    "RTX PRO 6000 Blackwell Server 96GB": "rtx-pro-6000-server",
    "7900 XTX (PCIe)": "rx-7900-xtx",
    "M2 Ultra 76-Core GPU 192GB": "m2-ultra",
    "M3 Max 40‑Core GPU 64GB": "m3-max",
}
MODELS = {
    "Llama-2-7B": "llama-2-7b",
    "Llama2-7B": "llama-2-7b",
    "Llama2 7B": "llama-2-7b",
    "Llama 7B": "llama-2-7b",  # LLaMA and Llama 2 of 7 and 13 billion have the same matrices
    "LLaMA 7B": "llama-2-7b",
    "Llama2-13B": "llama-2-13b",
    "Llama 13B": "llama-2-13b",
    "Llama 33B": "llama-33b",
    "Llama2-70B": "llama-2-70b",
    "Llama2 70B": "llama-2-70b",
    "llama2-70b": "llama-2-70b",
    "LLaMA 70B": "llama-2-70b",
    "CodeLlama-34B": "codellama-34b",
    "CodeLlama 34B": "codellama-34b",
    "OpenLlama 3B": "open-llama-3b",
    "TinyLlama 1.1B": "tinyllama-1.1b",
    "Llama-3-8B": "llama-3-8b",
    "Llama-3-70B": "llama-3-70b",
    "Llama-3.1-8B": "llama-3.1-8b",
    "Mixtral-8x7B": "mixtral-8x7b",
    "Falcon 180B": "falcon-180b",
    "GPT-J 6B": "gpt-j-6b",
    "bloom-176b": "bloom-176b",
    "gpt-oss-20b": "gpt-oss-20b",
    "Qwen3.6-27B": "qwen3.6-27b",
    "Qwen3.6-35B-A3B": "qwen3.6-35b-a3b",
    "agentworld-35b-a3b": "qwen3.6-35b-a3b",  # by its name a tuning of it
    "lukealonso/Qwen3.5-397B-A17B-NVFP4": "qwen3.5-397b-a17b",
    "lukealonso/GLM-5.1-NVFP4-MTP": "glm-5.1",
}
HALF = FORMATS["fp16"]


@lru_cache(maxsize=64)
def model(name: str) -> ModelSpec | None:
    """The model of that name in the sources; None where it is not known."""
    ours = MODELS.get(name)
    if ours is None:
        return None
    own = json.loads((DATA / "models.json").read_text("utf-8")).get(ours)
    return parse_config(own["config"], name=ours, source=own["source"], where=ours) if own else load_model(ours)


def stored(spec: ModelSpec, text: str, engine: str) -> ModelSpec | None:
    """``spec`` as that engine stores it in the format called ``text``; None for a format that is not known."""
    formats = _formats(spec, text, engine)
    if formats is None:
        return None
    return replace(
        spec,
        weights=formats[WeightPart.FEED_FORWARD] if WeightPart.EXPERTS not in formats else formats[WeightPart.EXPERTS],
        part_formats=tuple(formats.items()),
        stored_bytes=(),
        checkpoint_bytes=None,
    )


def _formats(spec: ModelSpec, text: str, engine: str) -> dict[WeightPart, Precision] | None:
    name = text.lower()
    if name in ("fp16", "f16", "bf16"):
        return _even(HALF, HALF)
    if name == "fp8":
        return _even(FORMATS["fp8"], HALF)
    if name == "nvfp4":  # as modelopt and the community store mixtures: the experts alone
        return (
            {**_even(HALF, HALF), WeightPart.EXPERTS: FORMATS["nvfp4"]}
            if _mixture(spec)
            else _even(FORMATS["nvfp4"], HALF)
        )
    if name == "mxfp4":
        return {**_even(HALF, HALF), WeightPart.EXPERTS: FORMATS["mxfp4"]}
    if name == "q4_k_m" or (name == "4-bit" and engine == "Llama.cpp"):
        return _q4_k_m(spec)
    low = _low(name, engine)
    return _even(*low) if low else None


def _low(name: str, engine: str) -> tuple[Precision, Precision] | None:
    """(matrices of the layers, head) of a weight-only format."""
    if name == "int8":  # gpt-fast: the head too, one scale a row
        return FORMATS["int8"], FORMATS["int8"]
    if name == "int4-g32":  # gpt-fast: a scale and a zero in bf16 for 32 values, the head too
        return _int(5.0), _int(5.0)
    if name == "4-bit" and engine.startswith("MLC"):  # q4f16_1: a scale in fp16 for 32 values, the head too
        return _int(4.5), _int(4.5)
    if name in ("4-bit", "gptq g128", "awq int4", "int4"):  # GPTQ, AWQ: scale and zero for 128 values
        return _int(4.16), HALF
    if name.startswith("exl2"):  # the average as asked for; the head in 6 bits (its default)
        return _int(float(name.split()[1])), Precision("int6", 6.0, "bf16")
    return None


def _q4_k_m(spec: ModelSpec) -> dict[WeightPart, Precision]:
    """llama.cpp's rule (llama_tensor_get_type): Q4_K of 4.5 bits; of the value and down projections half of the layers
    in Q6_K of 6.5625 bits, as the head. Sums to the published file size of Llama 3 8B, 4.58 GiB, within 0.2%."""
    mixed = (4.5 + 6.5625) / 2
    attention = spec.layers[0].attention
    value_share = attention.kv_values_per_token / 2 * spec.hidden_size / attention.parameters
    return {
        **_even(_int((2 * 4.5 + mixed) / 3), Precision("int6", 6.5625, "bf16")),
        WeightPart.ATTENTION: _int(4.5 + (mixed - 4.5) * value_share),
        WeightPart.EMBEDDING: _int(4.5),
    }


def _int(bits: float) -> Precision:
    return Precision("int4", bits, "bf16")


def _even(layers: Precision, head: Precision) -> dict[WeightPart, Precision]:
    return {
        WeightPart.ATTENTION: layers,
        WeightPart.FEED_FORWARD: layers,
        WeightPart.EXPERTS: layers,
        WeightPart.HEAD: head,
        WeightPart.EMBEDDING: HALF,
        WeightPart.NORMS: HALF,
    }


def _mixture(spec: ModelSpec) -> bool:
    return any(group.feed_forward.experts for group in spec.layers)
