"""Safetensors folders: what is read, and how damaged ones are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from tests.engine.tiny import tiny_checkpoint  # noqa: E402

from servewise.engine.checkpoint import load_checkpoint, weights_of  # noqa: E402
from servewise.errors import InputError  # noqa: E402

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def edited(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The folder with its one safetensors file changed."""
    weights = load_file(folder / SINGLE)
    change(weights)
    save_file(weights, folder / SINGLE)
    return folder


@pytest.mark.parametrize("shard_size", ["1GB", "100KB"])
def test_every_weight_is_the_stored_one(shard_size: str, tmp_path: Path) -> None:
    """From one file or from shards, names, dtype and numbers are those that safetensors itself reads."""
    folder = tiny_checkpoint(tmp_path, dtype=torch.bfloat16, max_shard_size=shard_size)
    stored: dict[str, Any] = {}
    for shard in folder.glob("*.safetensors"):
        with safe_open(shard, framework="pt") as file:
            stored |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    checkpoint = load_checkpoint(folder)

    assert checkpoint.stored == "bf16"
    assert set(checkpoint.names()) == set(stored)
    for name, weight in weights_of(checkpoint):
        assert weight.dtype == torch.bfloat16
        assert torch.equal(weight, stored[name]), name


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    """The shard that is gone is named, with what to do."""
    folder = tiny_checkpoint(tmp_path, max_shard_size="100KB")
    gone = sorted(folder.glob("*.safetensors"))[1]
    gone.unlink()

    with pytest.raises(InputError, match=rf"{gone.name}: this shard is missing; fetch the checkpoint again"):
        load_checkpoint(folder)


@pytest.mark.parametrize("kept", [0, 4, 8, 100, 5000, -1])
def test_a_truncated_file_is_named(kept: int, tmp_path: Path) -> None:
    """Cut anywhere, within the length, the header or the data, the file is refused by name."""
    folder = tiny_checkpoint(tmp_path)
    data = (folder / SINGLE).read_bytes()
    (folder / SINGLE).write_bytes(data[:kept])

    with pytest.raises(InputError, match=rf"{SINGLE}: is no whole safetensors file"):
        load_checkpoint(folder)


def test_a_wrong_shape_names_shard_and_tensor(tmp_path: Path) -> None:
    """Both shapes stand in the message."""
    name = "model.layers.1.mlp.up_proj.weight"
    folder = edited(tiny_checkpoint(tmp_path), lambda weights: weights.update({name: torch.zeros(128, 63)}))

    with pytest.raises(InputError, match=rf"{SINGLE}: {name} has the shape \[128, 63\].*\[128, 64\]"):
        load_checkpoint(folder)


def test_a_missing_weight_is_named(tmp_path: Path) -> None:
    """The first that lacks is named, with how many more."""
    folder = edited(tiny_checkpoint(tmp_path), lambda weights: weights.pop("model.norm.weight"))

    with pytest.raises(InputError, match=rf"{SINGLE}: lacks model.norm.weight, which config.json asks for"):
        load_checkpoint(folder)


def test_a_weight_that_would_be_left_out_is_refused(tmp_path: Path) -> None:
    """A bias that the config does not mention is no weight to ignore in silence; old rotary buffers are."""
    folder = tiny_checkpoint(tmp_path)
    edited(folder, lambda weights: weights.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(8)}))
    load_checkpoint(folder)
    edited(folder, lambda weights: weights.update({"model.layers.0.self_attn.q_proj.bias": torch.zeros(64)}))

    with pytest.raises(InputError, match=r"q_proj.bias', which a llama of this config.json does not use"):
        load_checkpoint(folder)


def test_quantised_storage_is_refused(tmp_path: Path) -> None:
    """An int8 matrix is named with its type and those that are read."""
    name = "model.layers.0.mlp.up_proj.weight"
    folder = edited(tiny_checkpoint(tmp_path), lambda weights: weights.update({name: weights[name].to(torch.int8)}))

    with pytest.raises(InputError, match=rf"{name} is stored as I8, which is not read; BF16, F16, F32, F64 are"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("{}", "lacks the object weight_map"),
        ("[]", "must hold one JSON object"),
        ("{", "not valid JSON"),
        (json.dumps({"weight_map": {"model.norm.weight": "../x.safetensors"}}), "which is no shard's name"),
        (json.dumps({"weight_map": {"model.norm.weight": 7}}), "which is no shard's name"),
        (json.dumps({"weight_map": {"model.extra.weight": SINGLE}}), "lacks the weight 'model.extra.weight'"),
    ],
)
def test_hostile_indices_are_refused(index: str, said: str, tmp_path: Path) -> None:
    """An index that is damaged, points out of the folder or does not fit its shards is refused."""
    folder = tiny_checkpoint(tmp_path)
    (folder / INDEX).write_text(index)

    with pytest.raises(InputError) as caught:
        load_checkpoint(folder)

    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.00.pth"])
def test_pickles_are_refused_with_the_cure(name: str, tmp_path: Path) -> None:
    """A pickle is never loaded, in a folder or by its own path; the message says what to do instead."""
    folder = tiny_checkpoint(tmp_path)
    (folder / SINGLE).rename(folder / name)

    for path in (folder, folder / name):
        with pytest.raises(InputError, match=rf"{name}: is a pickle.*save_pretrained"):
            load_checkpoint(path)


def test_a_name_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    """Asking for an unknown weight names the checkpoint."""
    checkpoint = load_checkpoint(tiny_checkpoint(tmp_path))

    with pytest.raises(InputError, match=r"has no weight 'model\.layers\.9"):
        checkpoint.weight("model.layers.9.mlp.up_proj.weight")


def test_a_tied_model_may_carry_the_table_twice(tmp_path: Path) -> None:
    """lm_head.weight beside a tied table is passed over: it is the table."""
    folder = tiny_checkpoint(tmp_path, tied=True)
    edited(folder, lambda weights: weights.update({"lm_head.weight": weights["model.embed_tokens.weight"].clone()}))

    assert "lm_head.weight" not in load_checkpoint(folder).names()


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    """An empty folder, one file of a checkpoint and a text are each told what to give instead."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.safetensors").write_bytes(b"")
    (tmp_path / "x.txt").write_text("hello")

    with pytest.raises(InputError, match="holds no checkpoint; give a folder"):
        load_checkpoint(tmp_path / "empty")
    with pytest.raises(InputError, match="is one file of a checkpoint; give its folder"):
        load_checkpoint(tmp_path / "x.safetensors")
    with pytest.raises(InputError, match="is no GGUF file"):
        load_checkpoint(tmp_path / "x.txt")
