"""The command line that gives the running command's answer again, as a report shows it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import click

LINE = "servewise.line"  # in the context's meta: the words after the program's name
_LEFT_OUT = {"as_json", "output", "beside", "processes", "executor", "keep"}  # they do not change the answer
_SECRET = {"api_key", "headers", "key"}  # never shown, never kept
HIDDEN = "(hidden)"


def command_line() -> str | None:
    """``servewise plan llama-2-13b ...``, without where the answer goes and without keys; None outside a command."""
    context = click.get_current_context(silent=True)
    words = context.meta.get(LINE) if context else None
    if context is None or words is None:
        return None
    return shlex.join(["servewise", *_kept(words, _options(context))])


def typed_line() -> str | None:
    """The whole line as it was typed, for runs that are kept; keys and headers are hidden. None outside a command."""
    context = click.get_current_context(silent=True)
    words = context.meta.get(LINE) if context else None
    if context is None or words is None:
        return None
    return shlex.join(["servewise", *_hidden(words, _options(context))])


def _options(context: click.Context) -> Mapping[str, click.Parameter]:
    """The options of the command and of the groups that it is in, by every way to write them."""
    chain: list[click.Context] = []
    found: click.Context | None = context
    while found is not None:
        chain.append(found)
        found = found.parent
    params = [param for each in chain for param in each.command.params if isinstance(param, click.Option)]
    return {name: param for param in params for name in (*param.opts, *param.secondary_opts)}


def _hidden(words: Sequence[str], options: Mapping[str, click.Parameter]) -> Iterator[str]:
    coming = iter(words)
    for word in coming:
        name, equals, _ = word.partition("=")
        option = options.get(name)
        if option is None or option.name not in _SECRET:
            yield _without_query(word)
            continue
        yield f"{name}={HIDDEN}" if equals else name
        if not equals and next(coming, None) is not None:
            yield HIDDEN


def _without_query(word: str) -> str:
    """An address without the values in its query, which may be keys.

    >>> _without_query("http://host/v1?key=abc&v=2")
    'http://host/v1?key=(hidden)&v=(hidden)'
    """
    address, mark, query = word.partition("?")
    if not mark or "://" not in address:
        return word
    return f"{address}?{'&'.join(each.partition('=')[0] + '=' + HIDDEN for each in query.split('&'))}"


def _kept(words: Sequence[str], options: Mapping[str, click.Parameter]) -> Iterator[str]:
    coming = iter(words)
    for word in coming:
        name, equals, _ = word.partition("=")
        option = options.get(name) or (options.get(word[:2]) if word[:2] == "-o" else None)
        if option is None or option.name not in _LEFT_OUT | _SECRET:
            yield _without_query(word)
        elif not equals and word in options and not (isinstance(option, click.Option) and option.is_flag):
            next(coming, None)  # its value
