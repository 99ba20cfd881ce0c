"""Prompts in a log of requests: each as one text, as a server would see it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BODIES = ("body", "request", "input", "payload", "json")


@dataclass(frozen=True, slots=True)
class Prompt:
    """``text`` is what a prefix cache sees: tools first, then message after message; ``line`` of the log."""

    text: str
    line: int


def prompts_of(lines: Sequence[tuple[int, Any]]) -> tuple[Prompt, ...]:
    """The prompts, where at least half of the lines hold one."""
    found = [Prompt(text, number) for number, value in lines if (text := prompt_text(value))]
    return tuple(found) if found and len(found) * 2 >= len(lines) else ()


def prompt_text(value: Any) -> str:
    """The prompt of one request: chat messages, a prompt, or either in the body of a logged request; else empty."""
    if isinstance(value, list):
        return _messages(value)
    if not isinstance(value, Mapping):
        return ""
    messages = value.get("messages")
    if isinstance(messages, list):
        return _tools(value.get("tools")) + _messages(messages)
    prompt = value.get("prompt")
    if isinstance(prompt, str) and "completed" not in value:
        return prompt
    inner = (value.get(name) for name in BODIES)
    return next((text for each in inner if isinstance(each, (dict, list)) and (text := prompt_text(each))), "")


def _tools(tools: Any) -> str:
    """One line a tool, keys in the order in which they were sent: that is what the template prints."""
    if not isinstance(tools, list):
        return ""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in tools)


def _messages(messages: Sequence[Any]) -> str:
    parts = [_message(each) for each in messages]
    return "\n".join(parts) if parts and all(parts) else ""


def _message(message: Any) -> str:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        return ""
    content = message.get("content")
    if isinstance(content, list):
        texts = [each.get("text") or each.get("type", "") for each in content if isinstance(each, Mapping)]
        content = "\n".join(map(str, texts))
    calls = message.get("tool_calls")
    called = json.dumps(calls, ensure_ascii=False) if calls else ""
    return f"<{message['role']}>{content if isinstance(content, str) else ''}{called}"
