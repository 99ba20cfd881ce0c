"""Text to token ids and back, over a ``tokenizers.Tokenizer``, with the model's chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import tokenizers

from servewise.engine.checkpoints.chat import Message
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError

NORMALISED = 4  # a normaliser may join characters (NFC makes one of up to four)


class Template(Protocol):
    """A chat template: ``ChatTemplate``, or one that is rendered elsewhere."""

    @property
    def source(self) -> str:
        """Its text."""
        ...

    def render(self, messages: Sequence[Message]) -> str:
        """The conversation as text; raises InputError."""
        ...


class TextTokenizer:
    """The tokenizer published with a model.

    ``special`` holds the texts of its named tokens (``bos_token`` ...); ``template`` is None where the model has no
    chat template (a base model).
    """

    def __init__(
        self, backend: tokenizers.Tokenizer, template: Template | None, special: Mapping[str, str], where: str
    ) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend, self.template, self.special, self.where = backend, template, special, where

    @property
    def longest_token(self) -> int:
        """The most characters of a text that one token can stand for."""
        longest = max(map(len, self.backend.get_vocab(with_added_tokens=True)), default=1)
        return longest * (1 if self.backend.normalizer is None else NORMALISED)

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``, special tokens in it recognised, none added."""
        try:
            return list(self.backend.encode(text, add_special_tokens=False).ids)
        except (TypeError, UnicodeEncodeError):  # the library's word for it differs by version
            raise InputError("is no text that UTF-8 can hold (half of a surrogate pair?)", where="text") from None

    def prompt(self, text: str) -> list[int]:
        """Token ids of a plain prompt, with what the model is trained to see around one (Llama's begin token)."""
        begin = self.backend.encode("", add_special_tokens=True).ids
        return [*begin, *self.encode(text)]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ``tokens``, special ones left out; raises InputError for a number that is no token."""
        for token in tokens:
            if not 0 <= token < 2**32:
                raise InputError(f"{token} is no token", where="tokens")
        return self.backend.decode(list(tokens), skip_special_tokens=True)

    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Token ids of a conversation in the model's template, ready for the assistant's reply."""
        if self.template is None:
            hint = "send a plain prompt, or take the model's instruct version"
            raise InputError("the model is published without a chat template", where=self.where, hint=hint)
        return self.encode(self.template.render(messages))


def fitted(tokenizer: TextTokenizer, config: DecoderConfig) -> TextTokenizer:
    """``tokenizer``, if each of its ids has a row in the embedding table of ``config``."""
    vocabulary = tokenizer.backend.get_vocab(with_added_tokens=True)
    text, last = max(vocabulary.items(), key=lambda each: each[1], default=("", -1))
    if last >= config.vocabulary:
        what = f"gives {text[:40]!r} the id {last}, beyond the {config.vocabulary} rows of the model's vocabulary"
        raise InputError(what, where=tokenizer.where, hint="tokenizer and weights are of two models")
    return tokenizer


def backend_of_json(text: str, where: str) -> Any:
    """The tokenizer of a tokenizer.json's text; raises InputError where the tokenizers library refuses it."""
    try:
        return tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises bare Exception
        raise InputError(f"is no tokenizer ({' '.join(str(error).split())[:160]})", where=where) from None
