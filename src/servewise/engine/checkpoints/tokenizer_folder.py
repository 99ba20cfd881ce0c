"""The tokenizer in a checkpoint's folder: tokenizer.json, and the chat template from the files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servewise.engine.checkpoints.chat import ChatTemplate, chosen_template
from servewise.engine.checkpoints.confined import confined
from servewise.engine.checkpoints.hf_config import read_object
from servewise.engine.checkpoints.tokenizer import TextTokenizer, backend_of_json, fitted
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError
from servewise.modelspec.checkpoint import MOST_INDEX_BYTES, read_text

TOKENIZER, SETTINGS, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
# Beside TOKENIZER and SETTINGS, what a folder may hold of its tokenizer; copied with it.
TOKENIZER_FILES = (TOKENIZER, SETTINGS, TEMPLATE, "special_tokens_map.json", "added_tokens.json")


def tokenizer_of_folder(folder: Path, config: DecoderConfig) -> TextTokenizer:
    """The tokenizer; raises InputError where it is missing, damaged, or has ids beyond the vocabulary."""
    path = folder / TOKENIZER
    if not path.is_file():
        cure = "write one with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        raise InputError(f"has no {TOKENIZER}, the only tokenizer file that is read", where=str(folder), hint=cure)
    backend = backend_of_json(read_text(confined(folder, TOKENIZER), MOST_INDEX_BYTES), str(path))
    beside = confined(folder, SETTINGS)
    settings: Mapping[str, Any] = read_object(beside) if beside.is_file() else {}
    special = {name: text for name in SPECIAL if (text := _token(settings.get(name))) is not None}
    return fitted(TextTokenizer(backend, _template(folder, settings, special), special, str(path)), config)


def _template(folder: Path, settings: Mapping[str, Any], special: Mapping[str, str]) -> ChatTemplate | None:
    """chat_template.jinja, else the template in tokenizer_config.json, as transformers has it."""
    own = folder / TEMPLATE
    if own.is_file():
        source = chosen_template(read_text(confined(folder, TEMPLATE), MOST_INDEX_BYTES), str(own))
        assert source is not None, "a text is chosen as it is"
        return ChatTemplate(source, special, str(own))
    where = f"{folder / SETTINGS}: chat_template"
    source = chosen_template(settings.get("chat_template"), where)
    return None if source is None else ChatTemplate(source, special, where)


def _token(value: Any) -> str | None:
    """A special token: its text, or an object with its text as content."""
    text = value.get("content") if isinstance(value, Mapping) else value
    return text if isinstance(text, str) else None
