"""The tokenizer in a GGUF file's metadata, built as a ``tokenizers.Tokenizer``.

Byte-level BPE ("gpt2") with the way of cutting text that ``tokenizer.ggml.pre`` names, and SentencePiece's BPE
("llama"), whose merges follow from the pieces' scores. Control tokens are special, user-defined ones are matched whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from servewise.engine.checkpoints.chat import ChatTemplate, chosen_template
from servewise.engine.checkpoints.gguf_header import GgufHeader
from servewise.engine.checkpoints.tokenizer import TextTokenizer, fitted
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError

UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 2, 3, 4, 5  # tokenizer.ggml.token_type, gguf.constants.TokenType
SPACE = "\u2581"
SPECIAL = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}  # transformers' name -> GGUF's
MOST_PIECE_CHARACTERS = 256  # a SentencePiece piece is at most some 50; all its cuts are looked up
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# tokenizer.ggml.pre -> how text is cut before merging; the expressions are llama.cpp's (llama-vocab.cpp) and equal to
# those in the models' own tokenizer.json. SPLIT: by this expression; DIGITS: each digit alone, then as GPT-2 does.
SPLIT: Mapping[str, str] = {
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "tekken": _TEKKEN,
}
DIGITS = ("smollm", "starcoder", "refact")
GPT2 = ("gpt-2", "default")
WHOLE_PIECES = ("llama-bpe", "llama3", "llama-v3", "tekken")  # a piece in the vocabulary is taken without merging
NORMALISED = ("qwen2", "deepseek-r1-qwen")  # text is brought into Unicode's form C first
KNOWN_PRE = (*SPLIT, *DIGITS, *GPT2)


def tokenizer_of_gguf(header: GgufHeader, config: DecoderConfig) -> TextTokenizer:
    """The tokenizer; raises InputError where its kind is not known, its lists are damaged or exceed the vocabulary."""
    settings = {
        key.removeprefix("tokenizer.ggml."): value
        for key, value in header.metadata.items()
        if key.startswith("tokenizer.ggml.")
    }
    where = f"{header.where}: tokenizer"
    backend, special = backend_of(settings, where), special_texts(settings, where)
    source = chosen_template(header.metadata.get("tokenizer.chat_template"), header.where)
    template = None if source is None else ChatTemplate(source, special, f"{header.where}: tokenizer.chat_template")
    return fitted(TextTokenizer(backend, template, special, where), config)


def special_texts(settings: Mapping[str, Any], where: str) -> dict[str, str]:
    """``bos_token`` and its like by name, where the file states them."""
    tokens = _texts(settings, "tokens", where)
    found: dict[str, str] = {}
    for short, long in SPECIAL.items():
        index = settings.get(f"{long}_token_id")
        if index is not None:
            found[f"{short}_token"] = tokens[_token(index, f"{long}_token_id", tokens, where)]
    return found


def _token(index: Any, key: str, tokens: Sequence[str], where: str) -> int:
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(tokens):
        raise InputError(f"{key} must be a token from 0 to {len(tokens) - 1}, not {index!r:.40}", where=where)
    return index


def backend_of(settings: Mapping[str, Any], where: str) -> Tokenizer:
    """The tokenizer of the ``tokenizer.ggml.*`` entries, given without that prefix."""
    tokens = _texts(settings, "tokens", where)
    kinds = settings.get("token_type") or [1] * len(tokens)
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        raise InputError(f"token_type must be a list of {len(tokens)}, one item a token", where=where)
    if len(set(tokens)) < len(tokens):
        raise InputError("lists a token twice", where=where)
    builders = {"gpt2": _byte_level, "llama": _sentencepiece}
    model = settings.get("model")
    if model not in builders:
        raise InputError(f"model {str(model)[:40]!r} is not known; {', '.join(builders)} are", where=where)
    vocabulary = {text: index for index, text in enumerate(tokens) if kinds[index] != UNUSED}
    tokenizer = builders[model](settings, vocabulary, where)
    tokenizer.add_special_tokens(_added(tokens, kinds, (UNKNOWN, CONTROL), special=True))
    tokenizer.add_tokens(_added(tokens, kinds, (USER_DEFINED,), special=False))
    if _begins(settings):
        begin = _token(settings.get("bos_token_id"), "bos_token_id", tokens, where)
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[tokens[begin], "$A"], special_tokens=[(tokens[begin], begin)]
        )
    return tokenizer


def _begins(settings: Mapping[str, Any]) -> bool:
    """Whether a text begins with the begin token; where the file is silent, as llama.cpp has it for its kind."""
    usual = settings.get("model") == "llama" or settings.get("pre") in WHOLE_PIECES
    return settings.get("add_bos_token", usual and "bos_token_id" in settings) is True


def _added(tokens: Sequence[str], kinds: Sequence[Any], wanted: Sequence[int], *, special: bool) -> list[AddedToken]:
    return [
        AddedToken(text, special=special, normalized=False)
        for text, kind in zip(tokens, kinds, strict=True)
        if kind in wanted and text
    ]


def _texts(settings: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = settings.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise InputError(f"{key} must be a list of texts", where=where)
    return value


def _byte_level(settings: Mapping[str, Any], vocabulary: Mapping[str, int], where: str) -> Tokenizer:
    kind = settings.get("pre", "default")
    if kind not in KNOWN_PRE:
        hint = f"known: {', '.join(KNOWN_PRE)}"
        raise InputError(f"cuts text in the way {str(kind)[:40]!r}, which is not known", where=where, hint=hint)
    merges = [_pair(each, where) for each in _texts(settings, "merges", where)]
    tokenizer = _of_model(vocabulary, merges, where, ignore_merges=kind in WHOLE_PIECES)
    tokenizer.pre_tokenizer = _cutting(kind)
    tokenizer.decoder = decoders.ByteLevel()
    if kind in NORMALISED:
        tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def _pair(merge: str, where: str) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not (left and space and right):
        raise InputError(f"merge {merge[:40]!r} must be two pieces", where=where)
    return left, right


def _cutting(kind: str) -> pre_tokenizers.PreTokenizer:
    if kind in SPLIT:
        cut = pre_tokenizers.Split(Regex(SPLIT[kind]), behavior="isolated")
        return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), whole]) if kind in DIGITS else whole


def _sentencepiece(settings: Mapping[str, Any], vocabulary: Mapping[str, int], where: str) -> Tokenizer:
    """SentencePiece's BPE: spaces become U+2581, one is put before the text, unknown characters become byte pieces."""
    scores, tokens = settings.get("scores"), _texts(settings, "tokens", where)
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise InputError(f"scores must be a list of {len(tokens)}, one item a token", where=where)
    if any(isinstance(each, bool) or not isinstance(each, (int, float)) or math.isnan(each) for each in scores):
        raise InputError("scores must be numbers", where=where)
    if max(map(len, tokens)) > MOST_PIECE_CHARACTERS:
        raise InputError(f"has a piece of over {MOST_PIECE_CHARACTERS} characters", where=where)
    unknown = tokens[_token(settings.get("unknown_token_id", 0), "unknown_token_id", tokens, where)]
    merges = merges_by_score(vocabulary, scores)
    tokenizer = _of_model(vocabulary, merges, where, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    replace = normalizers.Replace(" ", SPACE)
    before = settings.get("add_space_prefix", True) is not False
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), replace]) if before else replace
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if before else steps)
    return tokenizer


def merges_by_score(ids: Mapping[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """Every way to join two pieces into a third, best score first.

    SentencePiece joins the neighbours whose joint piece scores highest; ties go to the lower ids of the two parts.
    """
    found = [
        (-scores[index], ids[left], ids[right], left, right)
        for text, index in ids.items()
        for cut in range(1, len(text))
        if (left := text[:cut]) in ids and (right := text[cut:]) in ids
    ]
    return [(left, right) for *_, left, right in sorted(found)]


def _of_model(vocabulary: Mapping[str, int], merges: list[tuple[str, str]], where: str, **settings: Any) -> Tokenizer:
    for left, right in merges:
        if left + right not in vocabulary or left not in vocabulary or right not in vocabulary:
            raise InputError(f"merges {left[:20]!r} and {right[:20]!r}, which are no tokens", where=where)
    return Tokenizer(models.BPE(vocab=dict(vocabulary), merges=merges, **settings))
