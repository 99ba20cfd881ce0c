"""What a request asks the stand-in server for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.vocabulary import count

SPARE_TOKENS = 64  # where the request names no length


class Unreadable(Exception):
    """The request's body is not one that can be answered; its text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One generation. ``prompt`` is what the answer depends on; ``wish`` the shape or fault that it asks for.

    ``words``: the prompt's tokens or words in order, where a prefix cache looks at them. ``user`` is the request's own
    mark, by which its log can be found.
    """

    api: Literal["chat", "completions"]
    model: str
    prompt: bytes
    words: tuple[str, ...]
    prompt_tokens: int
    most_tokens: int
    to_the_end: bool
    streamed: bool
    usage: Literal["no", "last", "every"]
    logprobs: int | None
    user: str | None
    wish: str | None


def asked_of(api: Literal["chat", "completions"], body: bytes, headers: Mapping[bytes, bytes], plan: MockPlan) -> Asked:
    """The request in ``body``; Unreadable where it is none."""
    document = _document(body)
    text, tokens = _prompt(api, document)
    if tokens is None:
        tokens = count(text, plan.tokens_per_word)
    words = tuple(text.split()) if plan.prefix_block else ()
    most = document.get("max_completion_tokens") or document.get("max_tokens") or SPARE_TOKENS
    if not isinstance(most, int) or most < 1:
        raise Unreadable("max_tokens is no number of tokens")
    return Asked(
        api=api,
        model=str(document.get("model", plan.model)),
        prompt=text.encode("utf-8", "surrogatepass"),
        words=words,
        prompt_tokens=tokens + (plan.template_tokens if api == "chat" else 0),
        most_tokens=most,
        to_the_end=document.get("ignore_eos") is True,
        streamed=document.get("stream") is True,
        usage=_usage(document),
        logprobs=_logprobs(api, document),
        user=document["user"] if isinstance(document.get("user"), str) else None,
        wish=_wish(document, headers),
    )


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreadable("the body is no JSON") from error
    if not isinstance(document, dict):
        raise Unreadable("the body is no JSON object")
    return document


def _prompt(api: str, document: Mapping[str, Any]) -> tuple[str, int | None]:
    """The prompt as text, and its tokens where it came as token numbers."""
    given = document.get("messages" if api == "chat" else "prompt")
    if api == "chat" and isinstance(given, list) and all(isinstance(each, dict) for each in given):
        return " ".join(_content(each.get("content")) for each in given), None
    if api == "completions" and isinstance(given, list) and len(given) == 1 and isinstance(given[0], str):
        given = given[0]
    if api == "completions" and isinstance(given, str):
        return given, None
    if api == "completions" and isinstance(given, list) and all(isinstance(each, int) for each in given):
        return " ".join(map(str, given)), len(given)
    raise Unreadable("there is no prompt")


def _content(content: object) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage(document: Mapping[str, Any]) -> Literal["no", "last", "every"]:
    options = document.get("stream_options")
    if not isinstance(options, dict) or not options.get("include_usage"):
        return "no"
    return "every" if options.get("continuous_usage_stats") else "last"


def _logprobs(api: str, document: Mapping[str, Any]) -> int | None:
    """How many candidates to show at each token; None for no log probabilities."""
    if api == "chat":
        top = document.get("top_logprobs")
        return min(top, 5) if document.get("logprobs") is True and isinstance(top, int) else None
    top = document.get("logprobs")
    return min(top, 5) if isinstance(top, int) and not isinstance(top, bool) else None


def _wish(document: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> str | None:
    if b"x-mock" in headers:
        return headers[b"x-mock"].decode("latin-1").strip()
    user, model = document.get("user"), document.get("model")
    if isinstance(user, str) and user.startswith("mock:"):
        return user.removeprefix("mock:")
    return model.rpartition("!")[2] if isinstance(model, str) and "!" in model else None
