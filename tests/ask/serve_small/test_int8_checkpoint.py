"""The 8-bit checkpoint that vLLM reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch
from safetensors import torch as safetensors

from servewise.ask.serve_small.int8_checkpoint import int8_rows, write_int8
from servewise.errors import InputError


def test_rounded_weights_are_within_half_a_step_of_the_true_ones() -> None:
    """Each row's largest weight is met exactly (in 127 steps), every other within half a step."""
    weight = torch.randn(7, 33, generator=torch.Generator().manual_seed(0))
    steps, scale = int8_rows(weight)
    assert steps.dtype == torch.int8
    assert scale.shape == (7, 1)
    assert bool(((steps * scale - weight).abs() <= scale / 2 + 1e-7).all())
    assert steps.abs().amax(dim=1).tolist() == [127] * 7


def test_a_row_of_noughts_stays_nought() -> None:
    """No division by nought."""
    steps, scale = int8_rows(torch.zeros(2, 4))
    assert not steps.any()
    assert bool(torch.isfinite(scale).all())


def folder(place: Path) -> Path:
    """A checkpoint of three tensors."""
    place.mkdir()
    weights = {
        "model.embed_tokens.weight": torch.randn(8, 4, dtype=torch.bfloat16),
        "model.layers.0.mlp.up_proj.weight": torch.randn(8, 4, dtype=torch.bfloat16),
        "model.norm.weight": torch.ones(4, dtype=torch.bfloat16),
    }
    safetensors.save_file(weights, place / "model.safetensors")
    (place / "config.json").write_text('{"model_type": "llama"}')
    return place


def test_products_are_quantised_and_the_rest_is_kept(tmp_path: Path) -> None:
    """Embeddings and norms stay as they are; the scheme stands in the configuration."""
    source, target = folder(tmp_path / "source"), tmp_path / "target"
    write_int8(source, target)
    before, after = (safetensors.load_file(each / "model.safetensors") for each in (source, target))
    assert torch.equal(after["model.embed_tokens.weight"], before["model.embed_tokens.weight"])
    assert torch.equal(after["model.norm.weight"], before["model.norm.weight"])
    assert after["model.layers.0.mlp.up_proj.weight"].dtype == torch.int8
    assert after["model.layers.0.mlp.up_proj.weight_scale"].shape == (8, 1)
    config = json.loads((target / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert config["quantization_config"]["quant_method"] == "compressed-tensors"


def test_a_place_that_cannot_be_written_is_wrong_input(tmp_path: Path) -> None:
    """The path is named, and no part is left."""
    source = folder(tmp_path / "source")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_int8(source, tmp_path / "file" / "target")
