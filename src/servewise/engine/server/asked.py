"""What a request asks for: prompts as token ids, sampling settings, and how the answer is to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from servewise.engine.checkpoint import Tokenizer
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.server.fault import Fault, fault_of
from servewise.engine.server.fields import Fields, whole_number
from servewise.engine.server.limits import RequestLimits
from servewise.errors import InputError

MOST_LOGPROBS = 20  # OpenAI's limit for chats, and vLLM's ``max_logprobs``
COMPLETION_TOKENS = 16  # of a completion that does not say, in the OpenAI API and vLLM
LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class Served:
    """The model as the API shows it: its name, and the longest prompt and reply together [tokens].

    ``version`` is the server's, ``token_bytes`` the length of the longest token's text where it is known: a text of
    more than ``context_tokens`` times that cannot fit, and is refused before it is cut into tokens.
    """

    name: str
    context_tokens: int
    vocabulary: int
    tokenizer: Tokenizer
    version: str = ""
    limits: RequestLimits = field(default_factory=RequestLimits)
    token_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``n`` choices of each of ``prompts``. ``usage``: at a stream's end; ``running_usage``: in every chunk too."""

    prompts: tuple[tuple[int, ...], ...]
    settings: SamplingSettings
    n: int = 1
    stream: bool = False
    usage: bool = False
    running_usage: bool = False

    @property
    def choices(self) -> int:
        """Prompts x n."""
        return len(self.prompts) * self.n

    def wanted(self) -> list[tuple[tuple[int, ...], SamplingSettings]]:
        """Prompt and settings of each choice, in the order of the answer; a seed counts up over a prompt's choices."""
        seed = self.settings.seed
        each = [self.settings if seed is None else replace(self.settings, seed=seed + at) for at in range(self.n)]
        return [(prompt, settings) for prompt in self.prompts for settings in each]


def asked_chat(body: Mapping[str, Any], served: Served) -> Asked:
    """The request of ``/v1/chat/completions``; raises Fault."""
    fields = Fields(body)
    _check_model(fields, served)
    messages = _messages(fields)
    limit = fields.whole("max_completion_tokens", 1, LARGEST)
    older = fields.whole("max_tokens", 1, LARGEST)
    limit = older if limit is None else limit
    alternatives = fields.whole("top_logprobs", 0, MOST_LOGPROBS)
    logprobs = (alternatives or 0) if fields.flag("logprobs") else None
    if alternatives is not None and logprobs is None:
        raise Fault("top_logprobs needs logprobs: true", param="top_logprobs", code="invalid_value")
    how = _delivery(fields, served.limits)
    settings = _settings(fields, served, logprobs)
    fields.refuse_rest()
    _check_length("".join(each["content"] for each in messages), served, "messages")
    try:
        prompt = tuple(served.tokenizer.chat(messages))
    except InputError as error:
        raise fault_of(error, "messages") from None
    longest = _room(prompt, limit, served, "messages")
    return Asked(prompts=(prompt,), settings=replace(settings, max_tokens=limit or longest), **how)


def _check_length(text: str, served: Served, param: str) -> None:
    """Refuse a text that is too long for the context whatever its tokens are: cutting it would take long."""
    most = served.context_tokens * (served.token_bytes or len(text))
    if len(text) > most:
        message = f"this model's maximum context length is {served.context_tokens} tokens; the {param} cannot fit"
        raise Fault(message, param=param, code="context_length_exceeded")


def asked_completion(body: Mapping[str, Any], served: Served) -> Asked:
    """The request of ``/v1/completions``; raises Fault."""
    fields = Fields(body)
    _check_model(fields, served)
    prompts = _prompts(fields.take("prompt"), served)
    limit = fields.whole("max_tokens", 1, LARGEST)
    logprobs = fields.whole("logprobs", 0, MOST_LOGPROBS)
    how = _delivery(fields, served.limits)
    settings = _settings(fields, served, logprobs)
    fields.refuse_rest()
    if len(prompts) * how["n"] > served.limits.choices:
        raise Fault(f"prompts x n must be {served.limits.choices} at most", param="n", code="invalid_value")
    longest = min(_room(prompt, limit, served, "prompt") for prompt in prompts)
    return Asked(
        prompts=prompts, settings=replace(settings, max_tokens=limit or min(COMPLETION_TOKENS, longest)), **how
    )


def _check_model(fields: Fields, served: Served) -> None:
    name = fields.text("model")
    if name is None:
        raise Fault(f"model is missing; this server has {served.name!r}", param="model", code="missing_parameter")
    check_name(name, served)


def check_name(name: str, served: Served) -> None:
    """Raise Fault (404) where a model is asked for that is not served."""
    if name != served.name:
        message = f"the model {name[:200]!r} does not exist; this server has {served.name!r}"
        raise Fault(message, status=404, param="model", code="model_not_found")


def _delivery(fields: Fields, limits: RequestLimits) -> dict[str, Any]:
    """``n``, and how the answer comes."""
    n = fields.whole("n", 1, limits.choices)
    stream = fields.flag("stream")
    given = fields.take("stream_options")
    if given is None:
        return {"n": n or 1, "stream": stream}
    if not isinstance(given, dict):
        raise fields.wrong("stream_options", "must be an object", given)
    if not stream:
        raise Fault("stream_options needs stream: true", param="stream_options", code="invalid_value")
    options = Fields(given, "stream_options")
    usage, running = options.flag("include_usage"), options.flag("continuous_usage_stats")
    options.flag("include_obfuscation")
    options.refuse_rest()
    return {"n": n or 1, "stream": stream, "usage": usage, "running_usage": usage and running}


def _settings(fields: Fields, served: Served, logprobs: int | None) -> SamplingSettings:
    """The sampling settings, without the limit of tokens."""
    top_k = fields.whole("top_k", -1, LARGEST)
    try:
        return SamplingSettings(
            temperature=fields.number("temperature", 1.0),
            top_k=min(max(top_k or 0, 0), served.vocabulary),
            top_p=fields.number("top_p", 1.0),
            min_p=fields.number("min_p", 0.0),
            presence_penalty=fields.number("presence_penalty", 0.0),
            frequency_penalty=fields.number("frequency_penalty", 0.0),
            repetition_penalty=fields.number("repetition_penalty", 1.0),
            seed=fields.whole("seed", -LARGEST, LARGEST - served.limits.choices),
            stop=_stops(fields, served.limits),
            logprobs=logprobs,
            ignore_end=fields.flag("ignore_eos"),
        )
    except InputError as error:
        raise Fault(str(error), param=error.what.split()[0], code="invalid_value") from None


def _stops(fields: Fields, limits: RequestLimits) -> tuple[str, ...]:
    given = fields.take("stop")
    if given is None:
        return ()
    stops = [given] if isinstance(given, str) else given
    if not isinstance(stops, list) or not all(isinstance(each, str) and each for each in stops):
        raise fields.wrong("stop", "must be a string or a list of strings, none empty", given)
    if len(stops) > limits.stops or max(map(len, stops), default=0) > limits.stop_characters:
        what = f"must be {limits.stops} strings of {limits.stop_characters} characters at most"
        raise fields.wrong("stop", what, given)
    return tuple(stops)


def _messages(fields: Fields) -> list[dict[str, str]]:
    given = fields.take("messages")
    if not isinstance(given, list) or not given:
        raise fields.wrong("messages", "must be a list of at least one message", given)
    return [_message(each, f"messages[{at}]") for at, each in enumerate(given)]


def _message(given: Any, where: str) -> dict[str, str]:
    if not isinstance(given, dict):
        raise Fault(f"{where} must be an object", param=where, code="invalid_value")
    fields = Fields(given, where)
    role, name = fields.text("role"), fields.text("name")
    if role is None:
        raise fields.wrong("role", "must be a string", None)
    message = {"role": role, "content": _content(fields)}
    fields.refuse_rest()
    return message if name is None else message | {"name": name}


def _content(fields: Fields) -> str:
    """A message's text; parts of text are joined, as templates that know only text want them."""
    given = fields.take("content")
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise fields.wrong("content", "must be a string or a list of text parts", given)
    texts = []
    for part in given:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise fields.wrong("content", "may hold parts of type text only", part)
        texts.append(part["text"])
    return "\n".join(texts)


def _prompts(given: Any, served: Served) -> tuple[tuple[int, ...], ...]:
    """A text, token ids, or a list of either."""
    most = served.limits.choices
    match given:
        case str():
            return (_encoded(given, served),)
        case [first, *_] if whole_number(first) is not None:
            return (_tokens(given),)
        case [_, *_] if len(given) > most:
            raise Fault(f"a request may hold {most} prompts at most", param="prompt", code="invalid_value")
        case [_, *_]:
            return tuple(_encoded(each, served) if isinstance(each, str) else _tokens(each) for each in given)
    raise Fault("prompt must be a text, token ids, or a list of either", param="prompt", code="invalid_value")


def _encoded(text: str, served: Served) -> tuple[int, ...]:
    _check_length(text, served, "prompt")
    try:
        return tuple(served.tokenizer.prompt(text))
    except InputError as error:
        raise fault_of(error, "prompt") from None


def _tokens(given: Any) -> tuple[int, ...]:
    tokens = list(map(whole_number, given)) if isinstance(given, list) else [None]
    found = tuple(each for each in tokens if each is not None)
    if len(found) < len(tokens):
        raise Fault("prompt must be a text, token ids, or a list of either", param="prompt", code="invalid_value")
    return found


def _room(prompt: Sequence[int], limit: int | None, served: Served, param: str) -> int:
    """Tokens that the context leaves for the reply; raises Fault where that is none, or less than asked for."""
    _check_limits(prompt, limit, served.limits, param)
    longest = served.context_tokens
    left = longest - len(prompt)
    if left < 1 or (limit is not None and limit > left):
        wish = f" and {limit} for the reply" if limit is not None else ""
        message = (
            f"this model's maximum context length is {longest} tokens; the request has {len(prompt)} in the {param}"
            f"{wish}; shorten the {param} or lower max_tokens"
        )
        raise Fault(message, param=param if left < 1 else "max_tokens", code="context_length_exceeded")
    return min(left, served.limits.output_tokens or left)


def _check_limits(prompt: Sequence[int], limit: int | None, limits: RequestLimits, param: str) -> None:
    """Raise Fault where the operator allows less than the context would."""
    if len(prompt) > (limits.prompt_tokens or len(prompt)):
        message = f"the {param} has {len(prompt)} tokens, and this server takes {limits.prompt_tokens}"
        raise Fault(message, param=param, code="context_length_exceeded")
    if limit is not None and limit > (limits.output_tokens or limit):
        message = f"max_tokens is {limit}, and this server gives {limits.output_tokens}"
        raise Fault(message, param="max_tokens", code="invalid_value")
