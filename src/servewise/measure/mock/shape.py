"""How an answer is put into events and bytes: what servers do differently, and all of it right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One dialect. The defaults are vLLM's.

    ``tokens_per_event``: how many each event holds. ``usage``: where token counts stand (``asked``: in an event of
    its own after the last, and in every one, where the request's ``stream_options`` ask for that; ``last``: always
    in an event of its own; ``finish``: in the event that tells the finish reason). ``role``: when the event without
    a token comes (``early``: with the head). ``finish``: the finish reason comes ``with`` the last token, or
    ``after`` it. ``reasoning_tokens`` come first in the field ``reasoning_field``; ``tool_calls``: the output is
    arguments of a call. ``line_end`` of the events, ``space`` after ``data:``. ``done``: whether ``[DONE]`` ends it.
    ``comments``: keep-alive comments and fields that bring nothing stand between. ``writes``: how events lie in
    chunks and writes (``split``: cut at odd places, both the chunks and the writes; ``joined``: two in a chunk).
    ``closes``: after each answer the connection goes, having said so or not, or with a reset; ``framing``: how the body
    ends. ``version`` of HTTP (1.0 has no chunks), ``kind``: the content type (empty: none is said); ``interim``: 100
    Continue comes before. ``document``: one JSON document comes, though a stream was asked for.
    """

    tokens_per_event: int = 1
    usage: Literal["asked", "last", "finish", "every", "none"] = "asked"
    role: Literal["with-first", "early", "none"] = "with-first"
    finish: Literal["with", "after", "none"] = "with"
    reasoning_tokens: int = 0
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    tool_calls: bool = False
    line_end: Literal["\n", "\r\n"] = "\n"
    space: bool = True
    done: bool = True
    comments: bool = False
    writes: Literal["whole", "split", "joined"] = "whole"
    closes: Literal["no", "said", "unsaid", "reset"] = "no"
    framing: Literal["chunked", "close", "length"] = "chunked"
    version: Literal["1.1", "1.0"] = "1.1"
    kind: str = "text/event-stream; charset=utf-8"
    interim: bool = False
    document: bool = False

    @property
    def plain(self) -> bool:
        """Whether each token's event is known beforehand but for its word."""
        return (
            self.tokens_per_event == 1
            and self.usage != "every"
            and not (self.reasoning_tokens or self.tool_calls or self.comments)
            and self.writes == "whole"
        )


VLLM = Shape()

SHAPES: Mapping[str, Mapping[str, Any]] = {
    "two-tokens": {"tokens_per_event": 2},
    "ten-tokens": {"tokens_per_event": 10},
    "no-usage": {"usage": "none"},
    "usage-last": {"usage": "last"},
    "usage-in-finish": {"usage": "finish", "finish": "after"},
    "usage-every": {"usage": "every"},
    "role-early": {"role": "early"},
    "no-role": {"role": "none"},
    "finish-after": {"finish": "after"},
    "no-finish": {"finish": "none"},
    "no-done": {"done": False},
    "reasoning-content": {"reasoning_tokens": 10**9, "reasoning_field": "reasoning_content"},
    "reasoning": {"reasoning_tokens": 10**9, "reasoning_field": "reasoning"},
    "some-reasoning": {"reasoning_tokens": 4},
    "tool-calls": {"tool_calls": True},
    "comments": {"comments": True},
    "split": {"writes": "split"},
    "joined": {"writes": "joined"},
    "crlf": {"line_end": "\r\n"},
    "no-space": {"space": False},
    "closes": {"closes": "said"},
    "closes-unsaid": {"closes": "unsaid"},
    "reset-after": {"closes": "reset"},
    "until-close": {"framing": "close"},
    "length": {"framing": "length"},
    "http-1.0": {"framing": "close", "version": "1.0"},
    "100-continue": {"interim": True},
    "plain-type": {"kind": "text/plain"},
    "json-type": {"kind": "application/json"},
    "no-type": {"kind": ""},
    "document": {"document": True},
}


def reshaped(shape: Shape, name: str) -> Shape:
    """``shape`` with what ``name`` changes; KeyError where no shape has that name."""
    return replace(shape, **SHAPES[name])
