"""Checkpoints written and read again: by us, by transformers, and by the gguf package's own reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")
transformers = pytest.importorskip("transformers")

from tests.engine.tiny import CHAT_TEMPLATE, tiny_checkpoint  # noqa: E402

from servewise.engine.checkpoint import load_checkpoint, weights_of  # noqa: E402
from servewise.engine.checkpoints.opening import open_checkpoint  # noqa: E402
from servewise.engine.checkpoints.writing_gguf import write_gguf  # noqa: E402
from servewise.engine.checkpoints.writing_safetensors import write_safetensors  # noqa: E402
from servewise.errors import InputError, UnknownName  # noqa: E402

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
TOKENS = [[1, 84, 71, 290, 5, 17, 300, 2, 44]]


def logits_of(folder: Path, **how: Any) -> Any:
    """What transformers computes from the folder or GGUF file, in float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **how)
    with torch.inference_mode():
        return model(torch.tensor(TOKENS)).logits


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("format_", ["safetensors", "gguf"])
def test_a_bf16_checkpoint_comes_back_bit_for_bit(family: str, format_: str, tmp_path: Path) -> None:
    """bf16 weights written as bf16 or f32 and read again are the same numbers, and so is the config."""
    source = open_checkpoint(tiny_checkpoint(tmp_path / "source", family, dtype=torch.bfloat16))
    for dtype in ("bf16", "f32"):
        target = tmp_path / f"{dtype}.gguf" if format_ == "gguf" else tmp_path / dtype
        (write_gguf if format_ == "gguf" else write_safetensors)(source, target, dtype)
        found = load_checkpoint(target)

        assert list(found.names()) == list(source.names())
        for name, weight in weights_of(source):
            assert torch.equal(found.weight(name).float(), weight.float()), name
        assert found.stored.lower() == dtype


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_computes_the_same_from_the_written_folder(family: str, tmp_path: Path) -> None:
    """Logits of transformers are equal on the original and on what was written from a GGUF of it, bit for bit."""
    original = tiny_checkpoint(tmp_path / "source", family, seed=3)
    write_gguf(open_checkpoint(original), tmp_path / "model.gguf", "f32")
    write_safetensors(open_checkpoint(tmp_path / "model.gguf"), tmp_path / "again", "f32")

    torch.testing.assert_close(logits_of(tmp_path / "again"), logits_of(original), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_transformers_reads_the_gguf_as_the_original(family: str, tmp_path: Path) -> None:
    """transformers' own GGUF loading of the written file gives the original's logits: names and row order are right."""
    pytest.importorskip("accelerate", reason="transformers loads GGUF files with it")
    head_dim = 128 if family == "qwen3" else 16  # transformers takes 128 for a GGUF Qwen 3, whatever the file says
    original = tiny_checkpoint(tmp_path / "source", family, seed=4, head_dim=head_dim)
    write_gguf(open_checkpoint(original), tmp_path / "model.gguf", "f32")

    found = logits_of(tmp_path, gguf_file="model.gguf")

    torch.testing.assert_close(found, logits_of(original), rtol=1e-5, atol=1e-5)


def test_llama3_rope_scaling_survives_both_formats(tmp_path: Path) -> None:
    """The scaling goes through rope_freqs.weight and rope_scaling and comes back as it was."""
    original = tiny_checkpoint(tmp_path / "source", rope_scaling=LLAMA3, context_tokens=4096)
    source = open_checkpoint(original)
    write_gguf(source, tmp_path / "model.gguf", "f32")
    write_safetensors(open_checkpoint(tmp_path / "model.gguf"), tmp_path / "again", "f32")

    assert source.config.rope.factor == 8.0
    assert open_checkpoint(tmp_path / "model.gguf").config.rope == source.config.rope
    assert open_checkpoint(tmp_path / "again").config.rope == source.config.rope
    torch.testing.assert_close(logits_of(tmp_path / "again"), logits_of(original), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("dtype", "levels"), [("q8_0", 127), ("q4_0", 8)])
def test_blocks_stay_within_a_step_of_their_grid(dtype: str, levels: int, tmp_path: Path) -> None:
    """A quantised file differs from its source by at most one step of each block of 32: its peak over the levels."""
    source = open_checkpoint(tiny_checkpoint(tmp_path / "source", seed=5))
    write_gguf(source, tmp_path / "model.gguf", dtype)
    found = open_checkpoint(tmp_path / "model.gguf")

    assert found.stored == dtype.upper()
    for name in ("model.layers.0.mlp.up_proj.weight", "model.layers.1.self_attn.q_proj.weight"):
        want, have = source.weight(name).view(-1, 32), found.weight(name).view(-1, 32)
        assert ((want - have).abs() <= 1.01 * want.abs().amax(1, keepdim=True) / levels).all()
    assert torch.equal(found.weight("model.norm.weight"), source.weight("model.norm.weight"))


def test_the_gguf_packages_reader_finds_metadata_and_tensors(tmp_path: Path) -> None:
    """GGUFReader lists the tensors under llama.cpp's names with their shapes, and the metadata under its keys."""
    source = open_checkpoint(tiny_checkpoint(tmp_path / "source", "qwen3", dtype=torch.bfloat16))
    write_gguf(source, tmp_path / "model.gguf", "bf16")

    reader = gguf.GGUFReader(tmp_path / "model.gguf")
    fields = {key: field.contents() for key, field in reader.fields.items()}
    tensors = {each.name: (tuple(each.shape), each.tensor_type.name) for each in reader.tensors}

    assert fields["general.architecture"] == "qwen3"
    assert (fields["qwen3.block_count"], fields["qwen3.attention.key_length"]) == (2, 16)
    assert fields["general.file_type"] == gguf.LlamaFileType.MOSTLY_BF16
    assert len(fields["tokenizer.ggml.tokens"]) == len(fields["tokenizer.ggml.token_type"]) == 320
    assert (fields["tokenizer.ggml.eos_token_id"], fields["tokenizer.chat_template"]) == (2, CHAT_TEMPLATE)
    assert tensors["blk.1.attn_q.weight"] == ((64, 64), "BF16")
    assert tensors["blk.0.attn_k_norm.weight"] == ((16,), "F32")
    assert set(tensors) >= {"token_embd.weight", "output.weight", "output_norm.weight"}


@pytest.mark.parametrize("format_", ["safetensors", "gguf"])
def test_the_tokenizer_survives(format_: str, tmp_path: Path) -> None:
    """Ids, text and chat are the same before and after, and transformers' tokenizer agrees on the written folder."""
    source = open_checkpoint(tiny_checkpoint(tmp_path / "source"))
    write_gguf(source, tmp_path / "model.gguf", "f32")
    write_safetensors(open_checkpoint(tmp_path / "model.gguf"), tmp_path / "again", "f32")
    before = source.tokenizer()
    after = open_checkpoint(tmp_path / ("model.gguf" if format_ == "gguf" else "again")).tokenizer()
    chat = [{"role": "user", "content": "the cat é 🙂 12"}, {"role": "assistant", "content": "<|im_end|> hat"}]

    assert after.encode(chat[0]["content"]) == before.encode(chat[0]["content"])
    assert after.chat(chat) == before.chat(chat)
    assert after.decode(after.chat(chat)) == before.decode(before.chat(chat))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert theirs.apply_chat_template(chat, add_generation_prompt=True, return_dict=False) == before.chat(chat)


def test_large_checkpoints_come_in_shards(tmp_path: Path) -> None:
    """Each shard stays under the size asked for, the index names every weight, and the whole loads again."""
    source = open_checkpoint(tiny_checkpoint(tmp_path / "source"))
    write_safetensors(source, tmp_path / "shards", "f32", shard_bytes=100_000)

    index = json.loads((tmp_path / "shards" / "model.safetensors.index.json").read_text())
    shards = sorted((tmp_path / "shards").glob("*.safetensors"))

    assert set(index["weight_map"]) == set(source.names())
    assert len(shards) > 2
    assert all(shard.stat().st_size < 110_000 for shard in shards)
    assert index["metadata"]["total_size"] == sum(weight.nbytes for _, weight in weights_of(source))
    torch.testing.assert_close(logits_of(tmp_path / "shards"), logits_of(tmp_path / "source"), rtol=0, atol=0)


def test_what_is_there_is_not_overwritten_and_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    """A taken place is refused; weights that f16 cannot hold end the writing and leave the folder as it was."""
    folder = tiny_checkpoint(tmp_path / "source")
    source = open_checkpoint(folder)
    (tmp_path / "taken").mkdir()
    for write in (write_safetensors, write_gguf):
        with pytest.raises(InputError, match="is there already"):
            write(source, tmp_path / "taken", "f32")

    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    torch.nn.init.constant_(model.lm_head.weight, 70_000.0)
    model.save_pretrained(folder)
    before = sorted(tmp_path.iterdir())
    for write in (write_safetensors, write_gguf):
        with pytest.raises(InputError, match=r"lm_head.weight: holds numbers over 65,504"):
            write(open_checkpoint(folder), tmp_path / "new", "f16")
    assert sorted(tmp_path.iterdir()) == before


def test_unknown_dtypes_are_refused(tmp_path: Path) -> None:
    """q4_0 is no safetensors dtype, q9 none at all."""
    source = open_checkpoint(tiny_checkpoint(tmp_path / "source"))
    with pytest.raises(UnknownName, match=r"unknown dtype 'q4_0'"):
        write_safetensors(source, tmp_path / "a", "q4_0")
    with pytest.raises(UnknownName, match=r"unknown dtype 'q9'"):
        write_gguf(source, tmp_path / "b", "q9")


def test_rows_that_are_no_whole_blocks_are_written_as_f16(tmp_path: Path) -> None:
    """A hidden size of 48 cannot be cut into blocks of 32: those matrices are f16, as llama.cpp falls back."""
    source = open_checkpoint(tiny_checkpoint(tmp_path / "source", hidden=48, heads=4, kv_heads=2, head_dim=16))
    write_gguf(source, tmp_path / "model.gguf", "q8_0")

    types = {each.name: each.tensor_type.name for each in gguf.GGUFReader(tmp_path / "model.gguf").tensors}

    assert types["blk.0.attn_q.weight"] == "F16"
    assert types["blk.0.attn_output.weight"] == "Q8_0"
    want = source.weight("model.layers.0.mlp.down_proj.weight")
    have = open_checkpoint(tmp_path / "model.gguf").weight("model.layers.0.mlp.down_proj.weight")
    assert np.abs((want - have).numpy()).max() < 0.01
