"""What a request says, and what it is made of: words, or token ids where the API takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.measure.load.words import text_of, words
from servewise.workload import checks

Units = NDArray[np.int64]
Message = Mapping[str, Any]
Content = str | tuple[int, ...] | tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text, token ids, or a chat's messages. ``tokens``: what it was made to be on the server, None: not known."""

    content: Content
    tokens: int | None = None
    group: int | None = None

    @property
    def is_ids(self) -> bool:
        """Whether it is token ids."""
        return isinstance(self.content, tuple) and bool(self.content) and isinstance(self.content[0], int)


class Material(Protocol):
    """Units of a vocabulary of ``size``, joined into a prompt."""

    @property
    def size(self) -> int:
        """How many different units there are."""
        ...

    def joined(self, units: Units) -> str | tuple[int, ...]:
        """The content of these units, numbered from 0."""
        ...


@dataclass(frozen=True, slots=True)
class Words:
    """Text of common words, one token each in most vocabularies."""

    @property
    def size(self) -> int:
        """Words."""
        return len(words())

    def joined(self, units: Units) -> str:
        """The words with single spaces between."""
        return text_of(units)


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Token ids from ``lowest`` to ``highest``, for the completions API of vLLM, SGLang, llama.cpp and others.

    Special tokens stand below 1,000 (Llama 2, Mistral, SmolLM2) or at the end of a vocabulary (GPT-2, Llama 3, Qwen);
    30,000 is within every vocabulary that these have.
    """

    lowest: int = 1_000
    highest: int = 30_000

    def __post_init__(self) -> None:
        lowest = checks.tokens(self.lowest, "the lowest token id", least=0)
        if checks.tokens(self.highest, "the highest token id") <= lowest:
            raise InputError(f"token ids from {lowest} to {self.highest} are none", hint="give lowest < highest")

    @property
    def size(self) -> int:
        """Ids."""
        return self.highest - self.lowest + 1

    def joined(self, units: Units) -> tuple[int, ...]:
        """The ids."""
        return tuple((units + self.lowest).tolist())
