"""A safetensors folder with 8-bit weights, as vLLM's CPU build multiplies them.

Weights are rounded to the nearest of 255 steps, symmetric, one scale an output channel; activations are quantised by
the server, token by token. The layout is "int-quantized" of compressed-tensors, which vLLM reads:
https://github.com/vllm-project/compressed-tensors (2026-11).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from servewise.atomic import settle, settle_all
from servewise.errors import InputError

WEIGHTS = "model.safetensors"
HIGHEST = 127
KEPT = ("embed_tokens", "lm_head", "norm")  # in 16 bits: vLLM quantises the layers' products alone
GRID = {"num_bits": 8, "type": "int", "symmetric": True}
SCHEME: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": GRID | {"strategy": "channel", "dynamic": False},
            "input_activations": {
                "num_bits": 8,
                "type": "int",
                "symmetric": True,
                "strategy": "token",
                "dynamic": True,
            },
        }
    },
}


def write_int8(source: Path, target: Path) -> None:
    """Write the 16-bit folder ``source`` with 8-bit weights as ``target``, whole or not at all."""
    from safetensors.torch import load_file, save_file

    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        shutil.copytree(source, part, ignore=shutil.ignore_patterns("*.safetensors"))
        config = json.loads((part / "config.json").read_text("utf-8"))
        (part / "config.json").write_text(json.dumps(config | {"quantization_config": SCHEME}, indent=2))
        save_file(_quantised(load_file(source / WEIGHTS)), part / WEIGHTS, {"format": "pt"})
        settle_all(part)
        part.rename(target)
        settle(target.parent)
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=str(target)) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _quantised(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    found = {}
    for name, weight in weights.items():
        if weight.ndim != 2 or any(each in name for each in KEPT):
            found[name] = weight
            continue
        found[name], found[f"{name}_scale"] = int8_rows(weight)
    return found


def int8_rows(weight_OI: Tensor) -> tuple[Tensor, Tensor]:
    """(O, I) weights as 8-bit numbers, and the (O, 1) scales that they are to be multiplied by."""
    full_OI = weight_OI.float()
    scale_O1 = full_OI.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / HIGHEST
    return (full_OI / scale_O1).round().clamp(-HIGHEST, HIGHEST).to(torch.int8), scale_O1
