"""The command line that gives the running command's answer again, as a report shows it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import click

LINE = "servewise.line"  # in the context's meta: the words after the program's name
_LEFT_OUT = {"as_json", "output", "beside", "processes", "executor", "keep"}  # they do not change the answer
_SECRET = {"api_key", "headers", "key"}  # never shown, never kept


def command_line() -> str | None:
    """``servewise plan llama-2-13b ...``, without where the answer goes and without keys; None outside a command."""
    context = click.get_current_context(silent=True)
    words = context.meta.get(LINE) if context else None
    if context is None or words is None:
        return None
    return shlex.join(["servewise", *_kept(words, _options(context))])


def _options(context: click.Context) -> Mapping[str, click.Parameter]:
    """The options of the command and of the groups that it is in, by every way to write them."""
    chain: list[click.Context] = []
    found: click.Context | None = context
    while found is not None:
        chain.append(found)
        found = found.parent
    params = [param for each in chain for param in each.command.params if isinstance(param, click.Option)]
    return {name: param for param in params for name in (*param.opts, *param.secondary_opts)}


def _kept(words: Sequence[str], options: Mapping[str, click.Parameter]) -> Iterator[str]:
    coming = iter(words)
    for word in coming:
        name, equals, _ = word.partition("=")
        option = options.get(name) or (options.get(word[:2]) if word[:2] == "-o" else None)
        if option is None or option.name not in _LEFT_OUT | _SECRET:
            yield word
        elif not equals and word in options and not (isinstance(option, click.Option) and option.is_flag):
            next(coming, None)  # its value
