"""Errors that servers send, made into one line."""

from __future__ import annotations

from typing import Any

LINE_CHARACTERS = 300
_KEYS = ("message", "detail", "error", "msg", "type", "error_type", "code")


def error_in(event: dict[Any, Any]) -> str | None:
    """The error that an event or answer holds, as one line; None where it holds none.

    OpenAI's, vLLM's, SGLang's and llama.cpp's are ``{"error": {"message": ...}}``; TGI's ``{"error": "...",
    "error_type": ...}``; older vLLM's ``{"object": "error", "message": ...}``; FastAPI's ``{"detail": ...}``.
    """
    if event.get("error"):
        return line_of(event["error"])
    if event.get("object") == "error" or ("choices" not in event and ("detail" in event or "message" in event)):
        return line_of(event)
    return None


def line_of(error: object) -> str:
    """One printable line that says what an error object says."""
    for _ in range(4):
        if not isinstance(error, dict):
            break
        error = next((error[key] for key in _KEYS if error.get(key)), str(error))
    return one_line(str(error)) or "an error without a word"


def one_line(text: str) -> str:
    """Printable, on one line, and not long."""
    flat = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 4 * LINE_CHARACTERS]).split())
    return flat if len(flat) <= LINE_CHARACTERS else flat[: LINE_CHARACTERS - 1] + "…"
