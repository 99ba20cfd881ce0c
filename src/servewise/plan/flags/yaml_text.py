"""YAML as text, for what is written here: mappings, lists and plain values, comments beside keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

Value = str | int | float | bool | None | Mapping[str, "Value"] | Sequence["Value"]
PLAIN = re.compile(r"[A-Za-z_/][\w./-]*")
WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


def yaml_text(table: Mapping[str, Value], comments: Mapping[str, str] | None = None) -> str:
    """``table`` as block YAML; ``comments`` by key stand on the line above that key, wherever it first comes.

    >>> print(yaml_text({"a": {"b": [1, "on"]}}, {"b": "numbers"}), end="")
    a:
      # numbers
      b:
        - 1
        - "on"
    """
    return "\n".join(_mapping(table, 0, dict(comments or {}))) + "\n"


def _mapping(table: Mapping[str, Value], depth: int, comments: dict[str, str]) -> Iterator[str]:
    blank = "  " * depth
    for key, value in table.items():
        if key in comments:
            yield f"{blank}# {comments.pop(key)}"
        yield from _pair(f"{blank}{_scalar(key)}:", value, depth, comments)


def _pair(head: str, value: Value, depth: int, comments: dict[str, str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield head if value else f"{head} {{}}"
        yield from _mapping(value, depth + 1, comments)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield head if value else f"{head} []"
        yield from _items(value, depth + 1, comments)
    else:
        yield f"{head} {_scalar(value)}"


def _items(values: Sequence[Value], depth: int, comments: dict[str, str]) -> Iterator[str]:
    blank = "  " * depth
    for value in values:
        if isinstance(value, Mapping):
            lines = list(_mapping(value, depth + 1, comments))
            first = next(index for index, line in enumerate(lines) if not line.lstrip().startswith("#"))
            lines[first] = f"{blank}- {lines[first].lstrip()}"
            yield from lines
        else:
            yield f"{blank}- {_scalar(value)}"


def _scalar(value: Value) -> str:
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and value.lower() not in WORDS else _quoted(value)
    return json.dumps(value)


def _quoted(value: str) -> str:
    """In double quotes, where YAML reads JSON's escapes; characters that YAML folds or refuses are escaped too."""
    return "".join(map(_escaped, json.dumps(value, ensure_ascii=False)))


def _escaped(character: str) -> str:
    if character.isprintable() or "\ud800" <= character <= "\udfff":  # a lone surrogate is no text in any file
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
