"""GGUF files: headers against the gguf package's reader; damaged, hostile and foreign files refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")
pytest.importorskip("transformers")

from tests.engine.tiny import tiny_checkpoint  # noqa: E402

from servewise.engine.checkpoint import load_checkpoint  # noqa: E402
from servewise.engine.checkpoints.gguf_file import GgufFile  # noqa: E402
from servewise.engine.checkpoints.gguf_header import read_gguf_header  # noqa: E402
from servewise.engine.checkpoints.gguf_names import from_gguf_rows, to_gguf_rows  # noqa: E402
from servewise.engine.checkpoints.opening import open_checkpoint  # noqa: E402
from servewise.engine.checkpoints.writing_gguf import write_gguf  # noqa: E402
from servewise.errors import InputError  # noqa: E402


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny llama as q4_0."""
    folder = tmp_path_factory.mktemp("gguf")
    write_gguf(open_checkpoint(tiny_checkpoint(folder / "hf")), folder / "tiny.gguf", "q4_0")
    return folder / "tiny.gguf"


def rewritten(
    source: Path,
    target: Path,
    metadata: dict[str, Any] | None = None,
    change: Callable[[dict[str, np.ndarray]], object] = lambda _: None,
) -> Path:
    """The file again through the gguf package's reader and writer, with other metadata (None: left out) and tensors."""
    reader = gguf.GGUFReader(source)
    entries = {key: each.contents() for key, each in reader.fields.items() if not key.startswith("GGUF.")}
    entries |= metadata or {}
    tensors = {each.name: gguf.quants.dequantize(each.data, each.tensor_type) for each in reader.tensors}
    change(tensors)
    writer = gguf.GGUFWriter(target, entries.pop("general.architecture"))
    adders = {str: writer.add_string, bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
    for key, value in entries.items():
        if value is not None:
            adders.get(type(value), writer.add_array)(key, value)
    for name, data in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(data, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def refusal(path: Path) -> str:
    """The one line with which the file is refused."""
    with pytest.raises(InputError) as caught:
        load_checkpoint(path).tokenizer()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_header_is_what_the_gguf_packages_reader_finds(source: Path) -> None:
    """Metadata, shapes, types and offsets equal those of GGUFReader."""
    reader = gguf.GGUFReader(source)
    header = read_gguf_header(source)

    theirs = {key: each.contents() for key, each in reader.fields.items() if not key.startswith("GGUF.")}
    assert header.metadata == theirs
    for each in reader.tensors:
        ours = header.tensors[each.name]
        assert ours.shape == tuple(reversed([int(size) for size in each.shape]))
        assert (ours.type.name, ours.start, ours.bytes) == (each.tensor_type.name, each.data_offset, each.n_bytes)
    assert len(header.tensors) == len(reader.tensors)


def test_row_order_by_hand() -> None:
    """One head of 6 rows: 0 1 2 | 3 4 5 rotate as pairs (0,3) (1,4) (2,5), which llama.cpp wants side by side."""
    rows = torch.arange(6.0)[:, None]

    assert to_gguf_rows(rows, 1).flatten().tolist() == [0, 3, 1, 4, 2, 5]
    assert torch.equal(from_gguf_rows(to_gguf_rows(rows, 1), 1), rows)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_row_order_is_llama_cpps_permute(heads: int) -> None:
    """convert_hf_to_gguf.py: reshape(heads, 2, rows // heads // 2, ...).swapaxes(1, 2)."""
    weight = np.random.default_rng(0).normal(size=(32, 5)).astype(np.float32)
    expected = weight.reshape(heads, 2, 32 // heads // 2, 5).swapaxes(1, 2).reshape(weight.shape)

    np.testing.assert_array_equal(to_gguf_rows(torch.from_numpy(weight), heads).numpy(), expected)


def test_every_truncation_is_refused(source: Path, tmp_path: Path) -> None:
    """Cut at 60 places, in header, lists and data, the file is refused in one line that names it."""
    data = source.read_bytes()
    cuts = [0, 3, 4, 8, 23, 24, len(data) - 1, *(random.Random(1).randrange(len(data)) for _ in range(53))]
    for cut in cuts:
        path = tmp_path / "cut.gguf"
        path.write_bytes(data[:cut])

        assert "cut.gguf" in refusal(path), cut


def test_flipped_bits_never_end_in_a_traceback(source: Path, tmp_path: Path) -> None:
    """With random bytes of the header changed, the file loads or is refused; no other error appears."""
    data = source.read_bytes()
    draw = random.Random(2)
    path = tmp_path / "flipped.gguf"
    refused = 0
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(draw.randint(1, 8)):
            broken[draw.randrange(12_000)] = draw.randrange(256)
        path.write_bytes(broken)
        try:
            checkpoint = load_checkpoint(path)
            checkpoint.tokenizer().encode("the cat")
            checkpoint.weight(checkpoint.names()[1])
        except InputError:
            refused += 1

    assert refused > 100


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"general.architecture": "gemma3"}, "architecture 'gemma3' is not computed by the engine; read are llama"),
        ({"llama.block_count": None}, "missing field block_count"),
        ({"llama.block_count": 3}, "lacks the weight blk.2.attn_norm.weight"),
        ({"llama.block_count": 1}, "beyond its 1 layers"),
        ({"llama.embedding_length": 96}, "token_embd.weight has the shape [320, 64]"),
        ({"llama.attention.head_count": [4, 2]}, "attention.head_count must be a whole number, not a list"),
        ({"llama.attention.layer_norm_rms_epsilon": None}, "missing field attention.layer_norm_rms_epsilon"),
        ({"llama.expert_count": 8}, "is a mixture of experts"),
        ({"llama.rope.scaling.type": "yarn"}, "rope scaling 'yarn' is not computed"),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}, "rope scaling 'linear'"),
        ({"llama.rope.dimension_count": 8}, "rotates only part of each head"),
        ({"llama.attention.value_length": 32}, "keys and values of different length"),
        ({"tokenizer.ggml.eos_token_id": 400}, "eos_token_id must be from 0 to 319"),
        ({"split.count": 2}, "is one part of several; merge them"),
        ({"tokenizer.ggml.model": "t5"}, "model 't5' is not known; gpt2, llama are"),
        ({"tokenizer.ggml.pre": "viking"}, "cuts text in the way 'viking', which is not known"),
        ({"tokenizer.ggml.tokens": ["a", "a"], "tokenizer.ggml.token_type": [1, 1]}, "lists a token twice"),
        ({"tokenizer.ggml.tokens": None}, "tokens must be a list of texts"),
        ({"tokenizer.ggml.token_type": [1]}, "token_type must be a list of 320"),
        ({"tokenizer.ggml.merges": ["ab"]}, "merge 'ab' must be two pieces"),
        ({"tokenizer.ggml.merges": ["q zzz"]}, "which are no tokens"),
        ({"tokenizer.ggml.model": "llama"}, "scores must be a list of 320"),
    ],
)
def test_foreign_and_inconsistent_metadata_are_refused(
    metadata: dict[str, Any], said: str, source: Path, tmp_path: Path
) -> None:
    """Each is one line that names the file and what is wrong."""
    assert said in refusal(rewritten(source, tmp_path / "other.gguf", metadata))


def test_tokens_beyond_the_table_are_refused(source: Path, tmp_path: Path) -> None:
    """A vocabulary of 320 texts over an embedding table of 300 rows: tokenizer and weights of two models."""

    def cut(tensors: dict[str, np.ndarray]) -> None:
        for name in ("token_embd.weight", "output.weight"):
            tensors[name] = tensors[name][:300]

    rewritten(source, tmp_path / "cut.gguf", change=cut)

    assert "beyond the 300 rows of the model's vocabulary" in refusal(tmp_path / "cut.gguf")


def test_stretches_that_are_not_llama3s_are_refused(source: Path, tmp_path: Path) -> None:
    """rope_freqs.weight with factors that Llama 3.1's formula does not give (as in longrope) is refused."""
    odd = np.linspace(1.0, 5.0, 8, dtype=np.float32)
    rewritten(source, tmp_path / "odd.gguf", change=lambda tensors: tensors.update({"rope_freqs.weight": odd}))

    assert "in a way that is not Llama 3.1's" in refusal(tmp_path / "odd.gguf")


def test_a_weight_that_would_be_left_out_is_refused(source: Path, tmp_path: Path) -> None:
    """A tensor that the llama architecture has no place for is named."""
    extra = {"blk.0.attn_q_norm.weight": np.ones(16, dtype=np.float32)}
    rewritten(source, tmp_path / "extra.gguf", change=lambda tensors: tensors.update(extra))

    assert "'blk.0.attn_q_norm.weight', which a llama does not use" in refusal(tmp_path / "extra.gguf")


def test_an_untied_head_and_a_tied_one_are_told_apart(source: Path, tmp_path: Path) -> None:
    """Without output.weight the embedding table serves for both."""
    rewritten(source, tmp_path / "tied.gguf", change=lambda tensors: tensors.pop("output.weight"))

    assert load_checkpoint(tmp_path / "tied.gguf").config.tied
    assert not load_checkpoint(source).config.tied


def test_a_mistral_window_is_kept(source: Path, tmp_path: Path) -> None:
    """A llama file that states a sliding window is a Mistral, whose layers all have it."""
    config = GgufFile(rewritten(source, tmp_path / "window.gguf", {"llama.attention.sliding_window": 64})).config

    assert (config.family, config.window_tokens) == ("mistral", 64)


def test_a_folder_with_one_gguf_file_is_that_file(source: Path) -> None:
    """Its name is the folder's; two files are refused with how to name one."""
    folder = source.parent / "folder"
    folder.mkdir()
    (folder / "a.gguf").write_bytes(source.read_bytes())

    assert load_checkpoint(folder).config.name == "folder"
    (folder / "b.gguf").write_bytes(source.read_bytes())
    with pytest.raises(InputError, match="holds 2 GGUF files; give one"):
        load_checkpoint(folder)


def test_a_turns_end_ends_a_reply_though_no_key_names_it(source: Path, tmp_path: Path) -> None:
    """An instruct file whose eos is the end of a text also ends at its control token <|im_end|>, as in llama.cpp."""
    rewritten(source, tmp_path / "early.gguf", {"tokenizer.ggml.eos_token_id": 0})

    assert load_checkpoint(tmp_path / "early.gguf").config.end_tokens == (0, 2)


@pytest.mark.parametrize(
    ("metadata", "begins"),
    [
        ({"tokenizer.ggml.add_bos_token": True}, True),
        ({"tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.pre": "llama-bpe"}, False),
        ({"tokenizer.ggml.add_bos_token": None, "tokenizer.ggml.pre": "llama-bpe"}, True),
        ({"tokenizer.ggml.add_bos_token": None, "tokenizer.ggml.pre": "gpt-2"}, False),
    ],
)
def test_prompts_begin_as_the_file_or_its_kind_says(
    metadata: dict[str, Any], begins: bool, source: Path, tmp_path: Path
) -> None:
    """add_bos_token decides; where it is missing, Llama 3's kind begins with the begin token and GPT-2's does not."""
    tokenizer = GgufFile(rewritten(source, tmp_path / "x.gguf", metadata)).tokenizer()

    assert tokenizer.prompt("the") == [1] * begins + tokenizer.encode("the")
