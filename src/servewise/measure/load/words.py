"""Common English words, each one token with a space before it in the vocabularies that models use.

Checked on 2026-11-29 for all 1,024: SmolLM2 (GPT-2's kind), cl100k_base (Llama 3 and Qwen extend it), o200k_base,
DeepSeek V4, Mistral's Tekken and SentencePiece v1 vocabularies. Where a server's vocabulary cuts them otherwise,
``Prompts.calibrated`` finds out how many tokens a word takes.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).with_name("words.txt")


@lru_cache(1)
def words() -> tuple[str, ...]:
    """The words, each once."""
    return tuple(FILE.read_text("ascii").split())


def text_of(places: NDArray[np.integer]) -> str:
    """The words at ``places`` with single spaces between: rows of a table of bytes, without their padding."""
    padded: bytes = _table()[places].tobytes()
    return padded.translate(None, b"\0")[1:].decode("ascii")


@lru_cache(1)
def _table() -> NDArray[np.bytes_]:
    """Each word with a space before it, padded to the longest."""
    return np.array([f" {word}" for word in words()], np.bytes_)
