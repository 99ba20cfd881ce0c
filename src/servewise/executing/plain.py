"""Results as plain JSON and back, exactly: our own dataclasses and named tuples, numbers, arrays; nothing that runs.

A pickle can run anything when it is read; this cannot: what is read makes values of ``servewise``'s own record types,
field by field, and calls nothing. Floats are written so that they read back bit for bit.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import math
from array import array
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

OWN = "servewise."


def to_plain(value: Any) -> Any:
    """``value`` for JSON; what JSON has no word for is an object of one key, its kind. TypeError for other types."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [to_plain(each) for each in value]
    if isinstance(value, Enum):
        return {"enum": [_name(kind), value.name]}
    if dataclasses.is_dataclass(value):
        return {"record": [_name(kind), {name: to_plain(getattr(value, name)) for name in _fields(kind)}]}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return {"named": [_name(kind), [to_plain(each) for each in value]]}
    for word, (of, plain, _) in _KINDS.items():
        if isinstance(value, of):
            return {word: plain(value)}
    raise TypeError(f"no plain form of {kind.__module__}.{kind.__qualname__}")


def from_plain(plain: Any) -> Any:
    """The value that ``to_plain`` wrote. ValueError for anything else."""
    if isinstance(plain, list):
        return [from_plain(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) != 1:
        raise ValueError("is no plain value")
    ((word, content),) = plain.items()
    if word in _OF_TYPES:
        return _OF_TYPES[word](_type(content[0]), content[1])
    if word not in _KINDS:
        raise ValueError(f"no kind {word!r}")
    return _KINDS[word][2](content)


def _name(kind: type) -> str:
    if not kind.__module__.startswith(OWN) or "." in kind.__qualname__:
        raise TypeError(f"no plain form of {kind.__module__}.{kind.__qualname__}")
    return f"{kind.__module__}:{kind.__qualname__}"


def _type(name: str) -> type:
    """One of our record types; of a module's other contents, functions above all, none can be named."""
    module, _, word = name.partition(":")
    if not module.startswith(OWN) or "__" in module:
        raise ValueError(f"{name!r} is no type of ours")
    try:
        kind = getattr(importlib.import_module(module), word)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name!r} is no type of ours") from error
    if not isinstance(kind, type) or kind.__module__ != module:
        raise ValueError(f"{name!r} is no type of ours")
    return kind


def _fields(kind: Any) -> list[str]:
    return [each.name for each in dataclasses.fields(kind)]


def _record(kind: type, plain: Mapping[str, Any]) -> Any:
    if not dataclasses.is_dataclass(kind) or list(plain) != _fields(kind):
        raise ValueError(f"is no {kind.__name__}")
    made: Any = object.__new__(kind)  # its fields as they were: what its constructor would compute is among them
    for name, value in plain.items():
        object.__setattr__(made, name, from_plain(value))
    return made


def _named(kind: Any, plain: list[Any]) -> Any:
    if not issubclass(kind, tuple) or len(plain) != len(getattr(kind, "_fields", ())):
        raise ValueError(f"is no {kind.__name__}")
    return tuple.__new__(kind, [from_plain(each) for each in plain])


def _enum(kind: Any, name: str) -> Any:
    if not issubclass(kind, Enum) or name not in kind.__members__:
        raise ValueError(f"is no {kind.__name__}")
    return kind.__members__[name]


def _pairs(plain: list[Any]) -> dict[Any, Any]:
    return {from_plain(key): from_plain(value) for key, value in plain}


def _plain_pairs(value: Mapping[Any, Any]) -> list[Any]:
    return [[to_plain(key), to_plain(each)] for key, each in value.items()]


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _plain_numpy(value: Any) -> list[Any]:
    if value.dtype.hasobject:
        raise TypeError("no plain form of an array of objects")
    return [value.dtype.str, list(value.shape), _text(np.ascontiguousarray(value).tobytes())]


def _numpy(plain: list[Any]) -> Any:
    dtype = np.dtype(plain[0])
    if dtype.hasobject:
        raise ValueError("is an array of objects")
    return np.frombuffer(base64.b64decode(plain[2]), dtype).reshape(plain[1]).copy()


def _array(plain: list[str]) -> array[Any]:
    made = array(plain[0])
    made.frombytes(base64.b64decode(plain[1]))
    return made


_OF_TYPES: Mapping[str, Callable[[Any, Any], Any]] = {"record": _record, "named": _named, "enum": _enum}
_KINDS: Mapping[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tuple": (tuple, lambda value: [to_plain(each) for each in value], lambda plain: tuple(map(from_plain, plain))),
    "frozenset": (frozenset, lambda value: to_plain(sorted(value)), lambda plain: frozenset(from_plain(plain))),
    "scalar": (np.generic, lambda value: _plain_numpy(np.asarray(value)), lambda plain: _numpy(plain)[()]),
    "float": (float, repr, float),
    "dict": (dict, _plain_pairs, _pairs),
    "proxy": (MappingProxyType, _plain_pairs, lambda plain: MappingProxyType(_pairs(plain))),
    "array": (array, lambda value: [value.typecode, _text(value.tobytes())], _array),
    "numpy": (np.ndarray, _plain_numpy, _numpy),
    "bytes": (bytes, _text, base64.b64decode),
    "set": (set, lambda value: list(map(to_plain, value)), lambda plain: set(map(from_plain, plain))),
}
