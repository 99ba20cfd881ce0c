"""A chat template: the Jinja text that a model is published with, rendered in a sandbox as transformers does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from servewise.errors import InputError

MOST_TEMPLATE_CHARACTERS = 2**20
MOST_MESSAGES = 2**16
Message = Mapping[str, Any]
Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """``source`` is the template, ``variables`` what it may name beside the messages (``bos_token`` and its like).

    ``clock`` answers templates that ask for the date (``strftime_now``).
    """

    source: str
    variables: Mapping[str, str] = field(default_factory=dict)
    where: str = "chat template"
    clock: Clock = datetime.now

    def render(self, messages: Sequence[Message]) -> str:
        """The conversation as text, ready for the assistant's reply.

        Raises InputError for messages without role and content, and where the template refuses them or fails.
        """
        _check(messages)
        try:
            template = _compiled(self.source, self.clock)
            return template.render(messages=messages, add_generation_prompt=True, **self.variables)
        except jinja2.TemplateSyntaxError as error:
            raise InputError(f"line {error.lineno}: {_short(error)}", where=self.where) from None
        except Exception as error:  # a template is foreign code: it can raise anything
            raise InputError(f"cannot render these messages: {_short(error)}", where=self.where) from None


@lru_cache(maxsize=8)
def _compiled(source: str, clock: Clock) -> jinja2.Template:
    return _environment(clock).from_string(source)


def _check(messages: Sequence[Message]) -> None:
    if not messages:
        raise InputError("a chat needs at least one message", where="messages")
    if len(messages) > MOST_MESSAGES:
        raise InputError(f"over {MOST_MESSAGES} messages", where="messages")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError("a message must be an object with a role", where=f"messages[{index}]")
        if not isinstance(message.get("content"), str):
            raise InputError("content must be a text", where=f"messages[{index}]")


def _short(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:200]


class _Generation(Extension):
    """``{% generation %}`` marks the assistant's own text for training; here its content is rendered as it is."""

    tags = {"generation"}  # noqa: RUF012 (jinja2's own declaration)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_inside", []), [], [], body).set_lineno(line)

    def _inside(self, caller: Macro) -> str:
        return str(caller())


def _environment(clock: Clock) -> ImmutableSandboxedEnvironment:
    """The environment that chat templates are written for: transformers' ``_compile_jinja_template`` (5.24)."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: clock().strftime(form)
    return environment


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON; jinja2's own filter escapes HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def chosen_template(value: Any, where: str) -> str | None:
    """The template of a ``chat_template`` setting: a text, or the one called default of a list of named ones."""
    if isinstance(value, list):
        named = {each.get("name"): each.get("template") for each in _objects(value, where)}
        value = named.get("default", next(iter(named.values()), None))
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MOST_TEMPLATE_CHARACTERS:
        raise InputError("chat_template must be a text of under a million characters", where=where)
    return value


def _objects(values: Iterable[Any], where: str) -> list[Mapping[str, Any]]:
    found = [each for each in values if isinstance(each, Mapping) and isinstance(each.get("name"), str)]
    if not found:
        raise InputError("chat_template must be a text or a list of named templates", where=where)
    return found
