"""The tokens of a text by a model's own tokenizer, where the user gives its file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from servewise.errors import InputError


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens by the ``tokenizer.json`` at ``path``, without special tokens; every process reads it itself."""

    path: str

    def __call__(self, text: str) -> int:
        """How many tokens ``text`` is."""
        return len(_loaded(self.path).encode(text, add_special_tokens=False).ids)


def token_counter(path: Path | str) -> TokenCounter:
    """The counter of that file (or of the folder that holds it); InputError where it is none."""
    found = Path(path)
    found = found / "tokenizer.json" if found.is_dir() else found
    _loaded(str(found))
    return TokenCounter(str(found))


@lru_cache(2)
def _loaded(path: str) -> Any:
    reader = _library()
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint="give a model's tokenizer.json") from error
    try:
        return reader(text)
    except Exception as error:  # the library raises bare Exception for whatever is wrong
        what = f"is no tokenizer ({' '.join(str(error).split())[:120]})"
        raise InputError(what, where=path, hint="give a model's tokenizer.json") from error


def _library() -> Callable[[str], Any]:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise InputError("a tokenizer file needs a library", hint="pip install tokenizers") from error
    found: Callable[[str], Any] = Tokenizer.from_str
    return found
