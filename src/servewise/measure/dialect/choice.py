"""What one choice of an event or answer brought."""

from __future__ import annotations

from typing import Any, NamedTuple


class Brought(NamedTuple):
    """Text, reasoning or a tool call (``output``: any of them), the tokens named, their logprobs, and the end's reason.

    ``by_ids`` and ``by_logprobs`` are numbers of tokens; None where the event has no such list.
    """

    output: bool = False
    reasoning: bool = False
    text: str = ""
    by_ids: int | None = None
    by_logprobs: int | None = None
    logprobs: tuple[object, ...] = ()
    finish_reason: str | None = None


def brought_by(choice: dict[Any, Any], *, keep_logprobs: bool) -> Brought:
    """Read a choice: of chat (``delta`` in a stream, ``message`` in a whole answer) or of completions (``text``)."""
    part = choice.get("delta")
    reason = choice.get("finish_reason")
    finish_reason = reason if isinstance(reason, str) else None
    ids, logprobs = choice.get("token_ids"), choice.get("logprobs")
    if isinstance(part, dict) and ids is None and logprobs is None:  # the usual event, read with the fewest looks
        text = part.get("content")
        if text and isinstance(text, str):
            return Brought(True, False, text, None, None, (), finish_reason)
    if part is None:
        part = choice.get("message")
    if isinstance(part, dict):
        text = part.get("content")
        thought = part.get("reasoning_content") or part.get("reasoning")
        called = _calls(part.get("tool_calls")) or bool(part.get("function_call"))
    else:
        text, thought, called = choice.get("text"), None, False
    text = text if isinstance(text, str) else ""
    logprobs = logprobs if isinstance(logprobs, dict) else {}
    entries = _entries(logprobs)
    by_ids = len(ids) if isinstance(ids, list) else None
    by_logprobs = len(entries) if entries is not None else None
    return Brought(
        output=bool(text or thought or called or by_ids or by_logprobs),
        reasoning=bool(thought) and not (text or called),
        text=text,
        by_ids=by_ids,
        by_logprobs=by_logprobs,
        logprobs=tuple(_paired(logprobs, entries)) if keep_logprobs and entries else (),
        finish_reason=finish_reason,
    )


def _calls(calls: object) -> bool:
    """Whether a list of tool calls says anything: a name or a piece of the arguments."""
    if not isinstance(calls, list):
        return False
    functions = [call.get("function") for call in calls if isinstance(call, dict)]
    return any(isinstance(f, dict) and bool(f.get("name") or f.get("arguments")) for f in functions)


def _entries(logprobs: dict[Any, Any]) -> list[Any] | None:
    """One entry a token: ``content`` in chat, ``tokens`` in completions."""
    for key in ("content", "tokens"):
        if isinstance(logprobs.get(key), list):
            return list(logprobs[key])
    return None


def _paired(logprobs: dict[Any, Any], entries: list[Any]) -> list[Any]:
    """What the server said of each token; completions keep tokens, logprobs and alternatives in parallel lists."""
    if isinstance(logprobs.get("content"), list):
        return entries
    own, top = (logprobs.get(key) for key in ("token_logprobs", "top_logprobs"))
    return [{"token": token, "logprob": _at(own, i), "top_logprobs": _at(top, i)} for i, token in enumerate(entries)]


def _at(values: object, i: int) -> object:
    return values[i] if isinstance(values, list) and i < len(values) else None
