"""A folder's tokenizer as GGUF's ``tokenizer.*`` metadata.

How text is cut is one of the ways that llama.cpp knows by name. The name is found by behaviour: the way whose
normaliser and pre-tokenizer give what the model's own give on a text of hard cases, and whose ids then agree too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer

from servewise.engine.checkpoints.gguf_tokenizer import (
    CONTROL,
    GPT2,
    KNOWN_PRE,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    backend_of,
)
from servewise.engine.checkpoints.safetensors_folder import SafetensorsFolder
from servewise.engine.checkpoints.tokenizer import TextTokenizer
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError

NORMAL, BYTE = 1, 6
HARD_CASES = (
    "Hello  World, don't WON'T it's I'LL 12 345 6789012 x+=3; camelCase HTTPServer2 café cafe\u0301 ẞ "
    "\n\n  indented\n\tTabs\t\t and trailing   \r\n naïve Übergröße 你好，世界。 привет мир こんにちは 🙂👍🏽 "
    "٣٤٥ Ⅷ ½ a/b//c <tag> {json: [1, 2]}  …   end 's 've 'RE ' quote' e.g. U.S.A. \u00a0nbsp\u2003em"
)
_BYTE = re.compile("<0x[0-9A-F]{2}>")
END_NAMES = ("eos", "eot", "eom")


def vocabulary_metadata(checkpoint: SafetensorsFolder) -> dict[str, Any]:
    """The ``tokenizer.*`` entries; raises InputError for a tokenizer that GGUF's two kinds cannot express."""
    tokenizer = checkpoint.tokenizer()
    content = json.loads(tokenizer.backend.to_str())
    model = content.get("model", {})
    if model.get("type") != "BPE":
        raise InputError(f"a {model.get('type')} tokenizer cannot be written to GGUF; BPE can", where=tokenizer.where)
    tokens, kinds = _tokens(content, checkpoint.config.vocabulary)
    settings: dict[str, Any] = {"tokens": tokens, "token_type": kinds} | _special(tokenizer, checkpoint.config)
    if model.get("byte_fallback"):
        settings |= _sentencepiece(tokenizer, model, settings)
    else:
        settings |= _byte_level(tokenizer, model, settings)
    template = tokenizer.template
    entries = {f"tokenizer.ggml.{key}": value for key, value in settings.items()}
    return entries if template is None else entries | {"tokenizer.chat_template": template.source}


def _tokens(content: Mapping[str, Any], rows: int) -> tuple[list[str], list[int]]:
    """The text of each of the ``rows`` ids and its kind; ids without a token are unused."""
    model = content["model"]
    tokens, kinds = [f"[PAD{index}]" for index in range(rows)], [UNUSED] * rows
    for text, index in model["vocab"].items():
        tokens[index], kinds[index] = text, BYTE if model.get("byte_fallback") and _BYTE.fullmatch(text) else NORMAL
    for each in content.get("added_tokens", ()):
        tokens[each["id"]], kinds[each["id"]] = each["content"], CONTROL if each["special"] else USER_DEFINED
    if model.get("unk_token") in model["vocab"]:
        kinds[model["vocab"][model["unk_token"]]] = UNKNOWN
    return tokens, kinds


def _special(tokenizer: TextTokenizer, config: DecoderConfig) -> dict[str, Any]:
    """Begin and end tokens, and whether the tokenizer itself adds them."""
    named = tokenizer.backend.token_to_id(tokenizer.special.get("eos_token", ""))
    ends = dict.fromkeys((*(() if named not in config.end_tokens else (named,)), *config.end_tokens))
    found: dict[str, Any] = {f"{name}_token_id": token for name, token in zip(END_NAMES, ends, strict=False)}
    if config.begin_token is not None:
        found["bos_token_id"] = config.begin_token
    for name, long in (("unk_token", "unknown"), ("pad_token", "padding")):
        if (token := tokenizer.backend.token_to_id(tokenizer.special.get(name, ""))) is not None:
            found[f"{long}_token_id"] = token
    ids = tokenizer.backend.encode("a").ids
    found["add_bos_token"] = bool(ids) and ids[0] == config.begin_token
    found["add_eos_token"] = bool(ids) and ids[-1] in config.end_tokens
    return found


def _byte_level(tokenizer: TextTokenizer, model: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    merges = [" ".join(each) if isinstance(each, list) else each for each in model["merges"]]
    found: dict[str, Any] = {"model": "gpt2", "merges": merges}
    for kind in (*GPT2, *KNOWN_PRE):
        candidate = backend_of({**settings, **found, "pre": kind}, tokenizer.where)
        if _cut_alike(candidate, tokenizer.backend) and _ids_alike(candidate, tokenizer.backend):
            return found | {"pre": kind}
    hint = f"known to llama.cpp and here: {', '.join(KNOWN_PRE)}"
    raise InputError("cuts text in a way that has no name in GGUF", where=tokenizer.where, hint=hint)


def _cut_alike(one: Tokenizer, other: Tokenizer) -> bool:
    return _cut(one) == _cut(other) and _ignores_merges(one) == _ignores_merges(other)


def _cut(tokenizer: Tokenizer) -> list[str]:
    text = HARD_CASES if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(HARD_CASES)
    if tokenizer.pre_tokenizer is None:
        return [text]
    return [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


def _ignores_merges(tokenizer: Tokenizer) -> bool:
    return bool(getattr(tokenizer.model, "ignore_merges", False))


def _ids_alike(one: Tokenizer, other: Tokenizer) -> bool:
    found = [each.encode(HARD_CASES, add_special_tokens=False).ids for each in (one, other)]
    return bool(found[0] == found[1])


def _sentencepiece(tokenizer: TextTokenizer, model: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Scores that rank the pieces as the merges do: minus the place of the first merge that makes a piece."""
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(model["merges"]):
        ranks.setdefault("".join(merge if isinstance(merge, list) else merge.split(" ", 1)), rank)
    found = {
        "model": "llama",
        "pre": "default",
        "scores": [-float(ranks.get(text, len(ranks))) for text in settings["tokens"]],
        "add_space_prefix": tokenizer.backend.encode("a").tokens[-1:] != ["a"],
        "unknown_token_id": tokenizer.backend.token_to_id(model.get("unk_token") or "") or 0,
    }
    if not _ids_alike(backend_of({**settings, **found}, tokenizer.where), tokenizer.backend):
        what = "joins pieces in an order that SentencePiece's scores cannot express"
        raise InputError(what, where=tokenizer.where)
    return found
