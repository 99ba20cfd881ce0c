"""The two shapes in which the OpenAI API answers: chats and completions, whole and in chunks.

Sources: platform.openai.com/docs/api-reference/chat and /completions; ``stop_reason`` (the stop string that was met) is
vLLM's addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from servewise.engine.checkpoint import Tokenizer
from servewise.engine.sampling.sampler import Choice
from servewise.engine.server.driver import Token
from servewise.engine.server.token_text import chat_logprob, token_text


class Dialect(Protocol):
    """How a choice is written. ``prefix`` begins ids, ``kind`` is the object of an answer, ``chunk`` of its pieces."""

    prefix: str
    kind: str
    chunk: str

    def whole(self, index: int, tokens: Sequence[Token], logprobs: bool) -> dict[str, Any]:
        """A finished choice."""
        ...

    def piece(self, token: Token, first: bool, logprobs: bool, offset: int) -> dict[str, Any]:
        """One token of a choice; ``offset``: characters of token texts before it."""
        ...


class ChatDialect:
    """``/v1/chat/completions``."""

    prefix, kind, chunk = "chatcmpl-", "chat.completion", "chat.completion.chunk"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def whole(self, index: int, tokens: Sequence[Token], logprobs: bool) -> dict[str, Any]:
        """A finished choice."""
        last = tokens[-1]
        return {
            "index": index,
            "message": {"role": "assistant", "content": "".join(each.text for each in tokens), "refusal": None},
            "logprobs": self._logprobs([each.choice for each in tokens]) if logprobs else None,
            "finish_reason": last.finish_reason,
            "stop_reason": last.stop,
        }

    def piece(self, token: Token, first: bool, logprobs: bool, offset: int) -> dict[str, Any]:  # noqa: ARG002
        """One token of a choice; the first brings the role."""
        role = {"role": "assistant"} if first else {}
        return {
            "index": token.index,
            "delta": role | {"content": token.text},
            "logprobs": self._logprobs([token.choice]) if logprobs else None,
            "finish_reason": token.finish_reason,
        }

    def _logprobs(self, choices: Sequence[Choice]) -> dict[str, Any]:
        return {"content": [self._logprob(each) for each in choices], "refusal": None}

    def _logprob(self, choice: Choice) -> dict[str, Any]:
        assert choice.logprob is not None, "log probabilities were asked for"
        others = [chat_logprob(self._tokenizer, token, logprob) for token, logprob in choice.alternatives]
        return chat_logprob(self._tokenizer, choice.token, choice.logprob) | {"top_logprobs": others}


class CompletionDialect:
    """``/v1/completions``."""

    prefix, kind, chunk = "cmpl-", "text_completion", "text_completion"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def whole(self, index: int, tokens: Sequence[Token], logprobs: bool) -> dict[str, Any]:
        """A finished choice."""
        text, last = "".join(each.text for each in tokens), tokens[-1]
        return self._choice(index, text, tokens if logprobs else None, 0, last.finish_reason) | {
            "stop_reason": last.stop
        }

    def piece(self, token: Token, first: bool, logprobs: bool, offset: int) -> dict[str, Any]:  # noqa: ARG002
        """One token of a choice."""
        return self._choice(token.index, token.text, [token] if logprobs else None, offset, token.finish_reason)

    def _choice(
        self, index: int, text: str, shown: Sequence[Token] | None, offset: int, finish_reason: str | None
    ) -> dict[str, Any]:
        logprobs = self._logprobs([each.choice for each in shown], offset) if shown is not None else None
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason}

    def _logprobs(self, choices: Sequence[Choice], offset: int) -> dict[str, Any]:
        texts = [token_text(self._tokenizer, each.token) for each in choices]
        offsets = []
        for text in texts:
            offsets.append(offset)
            offset += len(text)
        return {
            "tokens": texts,
            "token_logprobs": [each.logprob for each in choices],
            "top_logprobs": [self._top(each) for each in choices],
            "text_offset": offsets,
        }

    def _top(self, choice: Choice) -> dict[str, float]:
        """The alternatives by text; of two with one text the more likely, which comes first."""
        found: dict[str, float] = {}
        for token, logprob in choice.alternatives:
            found.setdefault(token_text(self._tokenizer, token), logprob)
        return found
