"""The formats that engines use where the user names none."""

from __future__ import annotations

import pytest

from servewise.deployment.formats import engine_formats
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import parse_precision


@pytest.mark.parametrize(
    ("weights", "accelerator", "activations"),
    [
        ("fp8", "h100-sxm", "fp8"),  # W8A8: vLLM's fp8 on compute capability 8.9 and up
        ("fp8", "a100-80gb", "fp16"),  # no fp8 unit: weight-only through Marlin
        ("nvfp4", "b200", "nvfp4"),  # W4A4
        ("nvfp4", "h100-sxm", "fp16"),
        ("int4", "h100-sxm", "fp16"),  # W4A16
        ("mxfp4", "b200", "fp16"),  # as gpt-oss is served
        ("fp16", "h100-sxm", "fp16"),
    ],
)
def test_activations_follow_the_weights_where_the_chip_multiplies_in_their_format(
    weights: str, accelerator: str, activations: str
) -> None:
    """Low-bit weights meet activations of their format only where the chip has that format's unit."""
    chip = load_accelerator(accelerator)
    formats = engine_formats(load_model("llama-2-13b"), chip, weights=parse_precision(weights))

    assert formats.activations.name == activations
    assert formats.kv.bits == 16


def test_what_is_given_stays() -> None:
    """Nothing that the user names is replaced."""
    fp8, bf16 = parse_precision("fp8"), parse_precision("bf16")
    chip = load_accelerator("h100-sxm")
    formats = engine_formats(load_model("llama-2-13b"), chip, weights=fp8, kv=fp8, activations=bf16)

    assert (formats.weights, formats.kv, formats.activations) == (fp8, fp8, bf16)
