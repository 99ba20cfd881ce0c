"""The JSON of an answer: whole, or as the events of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import orjson

from servewise.measure.mock.distribution import candidates
from servewise.measure.mock.vocabulary import WORDS

Api = Literal["chat", "completions"]
CREATED = 1_700_000_000
Field = Literal["content", "reasoning_content", "reasoning", "tool_calls"]


class Usage(NamedTuple):
    """Token counts as a server gives them; ``cached`` None where it does not say."""

    prompt: int
    output: int
    cached: int | None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        counts: dict[str, Any] = {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.output,
            "completion_tokens": self.output,
        }
        return counts if self.cached is None else counts | {"prompt_tokens_details": {"cached_tokens": self.cached}}


def text_of(words: bytes) -> str:
    """The words, by number, as text."""
    return "".join(WORDS[each] for each in words)


@lru_cache(maxsize=16)
def plain_events(api: Api, model: str) -> tuple[bytes, ...]:
    """The event of each word alone."""
    field: Field = "content"
    return tuple(token_event(api, model, bytes((word,)), field=field) for word in range(256))


def token_event(
    api: Api,
    model: str,
    words: bytes,
    *,
    field: Field = "content",
    first: bool = False,
    finish: str | None = None,
    usage: Usage | None = None,
    logprobs: int | None = None,
) -> bytes:
    """One event's JSON with some words in it, or none."""
    text = text_of(words)
    told = None if logprobs is None or not words else told_probabilities(api, words, logprobs)
    if api == "completions":
        return _document(api, model, [{"index": 0, "text": text, "logprobs": told, "finish_reason": finish}], usage)
    delta = {"tool_calls": [_call(text, first)]} if field == "tool_calls" else {field: text}
    choice = {"index": 0, "delta": delta if words else {}, "logprobs": told, "finish_reason": finish}
    return _document(api, model, [choice], usage)


def role_event(model: str) -> bytes:
    """The event that a chat begins with, without a token."""
    delta = {"role": "assistant", "content": ""}
    return _document("chat", model, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}], None)


def usage_event(api: Api, model: str, usage: Usage) -> bytes:
    """The event that tells token counts alone."""
    return _document(api, model, [], usage)


def whole_answer(
    api: Api, model: str, words: bytes, *, field: Field, finish: str | None, usage: Usage | None, logprobs: int | None
) -> bytes:
    """The JSON of an answer that is no stream."""
    text = text_of(words)
    told = None if logprobs is None else told_probabilities(api, words, logprobs)
    choice: dict[str, Any] = {"index": 0, "logprobs": told, "finish_reason": finish}
    if api == "completions":
        choice["text"] = text
    else:
        named = {"content": None, "tool_calls": [_call(text, first=True)]} if field == "tool_calls" else {field: text}
        choice["message"] = {"role": "assistant"} | named
    return _document(api, model, [choice], usage, whole=True)


def told_probabilities(api: Api, words: bytes, shown: int) -> dict[str, Any]:
    """Log probabilities of the words and of the ``shown`` candidates at each, in the form of the API."""
    tables = [[(WORDS[each], value) for each, value in candidates(word, max(shown, 1))] for word in words]
    if api == "completions":
        return {
            "tokens": [table[0][0] for table in tables],
            "token_logprobs": [table[0][1] for table in tables],
            "top_logprobs": [dict(table[:shown]) for table in tables],
        }
    return {
        "content": [_token(*table[0]) | {"top_logprobs": [_token(*each) for each in table[:shown]]} for table in tables]
    }


def error_document(message: str, kind: str, code: int) -> bytes:
    """An error as OpenAI's API tells it."""
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def _token(word: str, logprob: float) -> dict[str, Any]:
    return {"token": word, "logprob": logprob, "bytes": list(word.encode())}


def _call(text: str, first: bool) -> dict[str, Any]:
    named = {"id": "call_0", "type": "function"} if first else {}
    function = {"name": "look", "arguments": text} if first else {"arguments": text}
    return {"index": 0} | named | {"function": function}


def _document(
    api: Api, model: str, choices: Sequence[dict[str, Any]], usage: Usage | None, *, whole: bool = False
) -> bytes:
    chat = api == "chat"
    kind = ("chat.completion" if whole else "chat.completion.chunk") if chat else "text_completion"
    document: dict[str, Any] = {"id": "chatcmpl-mock" if chat else "cmpl-mock", "object": kind, "created": CREATED}
    document |= {"model": model, "choices": choices}
    return orjson.dumps(document if usage is None else document | {"usage": usage.document()})
