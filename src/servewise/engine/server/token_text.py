"""The text of a single token, for log probabilities."""

from __future__ import annotations

from typing import Any

from servewise.engine.checkpoint import Tokenizer
from servewise.engine.checkpoints.tokenizer import TextTokenizer
from servewise.engine.running.text import UNFINISHED


def token_text(tokenizer: Tokenizer, token: int) -> str:
    """The token as text: a special one by its name, part of a character as the replacement character."""
    text = tokenizer.decode([token])
    if text or not isinstance(tokenizer, TextTokenizer):
        return text
    return str(tokenizer.backend.id_to_token(token) or "")


def token_bytes(text: str) -> list[int] | None:
    """Its UTF-8 bytes; None where the token is part of a character."""
    return None if UNFINISHED in text else list(text.encode())


def chat_logprob(tokenizer: Tokenizer, token: int, logprob: float) -> dict[str, Any]:
    """A token with its log probability, as chats show it."""
    text = token_text(tokenizer, token)
    return {"token": text, "logprob": logprob, "bytes": token_bytes(text)}
