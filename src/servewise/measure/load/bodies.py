"""JSON bodies for the two endpoints of the OpenAI API, as vLLM, SGLang, llama.cpp, TGI and others take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servewise.errors import InputError, UnknownName
from servewise.measure.load.prompt import Prompt
from servewise.measure.target import Api
from servewise.workload import checks

OWN = ("model", "messages", "prompt", "stream")  # fields that the form itself fills


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What every body of a run has beside its prompt.

    ``ignore_eos``: the answer goes on to its full length, so that runs are comparable (a field that vLLM, SGLang,
    llama.cpp and this project's engine take, TGI ignores and OpenAI refuses). ``min_tokens`` says the same to servers
    that know that field alone. ``logprobs``: so many alternatives for each token. ``extra`` fields replace any other
    field but the prompt's; None there leaves the field out.
    """

    model: str
    api: Api
    streamed: bool = True
    usage: bool = True
    ignore_eos: bool = True
    min_tokens: bool = False
    temperature: float = 0.0
    seed: int | None = 0
    logprobs: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.extra:
            if name in OWN:
                raise InputError(f"the field {name!r} is not an extra one", where="extra", hint=OWN_HINTS[name])

    def body(self, prompt: Prompt, output_tokens: int) -> bytes:
        """The whole body, ASCII JSON, for an answer of at most ``output_tokens``."""
        fields = self._prompt(prompt) | self._fixed() | {"max_tokens": output_tokens}
        if self.min_tokens:
            fields["min_tokens"] = output_tokens
        fields |= self.extra
        kept = {name: value for name, value in fields.items() if value is not None}
        return json.dumps(kept, separators=(",", ":")).encode("ascii")

    def check(self, prompt: Prompt) -> None:
        """Raise InputError where the endpoint does not take such a prompt."""
        if self.api == "chat" and prompt.is_ids:
            raise InputError("token ids need the completions endpoint", where="prompts", hint="use the completions API")
        if self.api == "completions" and isinstance(prompt.content, tuple) and not prompt.is_ids:
            raise InputError("messages need the chat endpoint", where="prompts", hint="give each line a prompt")

    def _prompt(self, prompt: Prompt) -> dict[str, Any]:
        self.check(prompt)
        if self.api == "completions":
            return {"prompt": prompt.content}
        is_text = isinstance(prompt.content, str)
        return {"messages": [{"role": "user", "content": prompt.content}] if is_text else prompt.content}

    def _fixed(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"model": self.model, "temperature": self.temperature, "seed": self.seed}
        if self.streamed:
            fields["stream"] = True
        if self.streamed and self.usage:
            fields["stream_options"] = {"include_usage": True}
        if self.ignore_eos:
            fields["ignore_eos"] = True
        if self.logprobs is not None and self.api == "chat":
            fields |= {"logprobs": True, "top_logprobs": self.logprobs}
        elif self.logprobs is not None:
            fields["logprobs"] = self.logprobs
        return fields


OWN_HINTS = {
    "model": "give the model's name",
    "messages": "give a file of prompts",
    "prompt": "give a file of prompts",
    "stream": "ask for answers without a stream",
}


def parsed_extra(text: str) -> dict[str, Any]:
    """The fields in a JSON object that a user gave; InputError where it is none.

    >>> parsed_extra('{"top_k": 1}')
    {'top_k': 1}
    """
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{checks.shown(text)} is no JSON", where="extra", hint='e.g. {"top_k": 1}') from error
    if not isinstance(found, dict):
        raise InputError(f"{checks.shown(text)} is no JSON object", where="extra", hint='e.g. {"top_k": 1}')
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def api_of(name: str) -> Api:
    """The endpoint of that name, chat or completions."""
    if name == "chat":
        return "chat"
    if name == "completions":
        return "completions"
    raise UnknownName("API", name[:40], ("chat", "completions"), hint="chat or completions")
