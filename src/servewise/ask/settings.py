"""An engine's own settings as text, ``max_num_seqs=128``, read by what its preset has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from servewise.errors import InputError, UnknownName

HINT = "write NAME=VALUE with the engine's own names, e.g. max_num_seqs=128"
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "on": True, "off": False}


def settings_of(kind: type, given: Mapping[str, object]) -> dict[str, Any]:
    """``given`` as arguments of the dataclass ``kind``; text is read as its fields want it.

    Raises UnknownName for a setting that ``kind`` does not have and InputError for a value that it cannot take.
    """
    wanted = {each.name: str(each.type) for each in fields(kind)}
    for name in given:
        if name not in wanted:
            raise UnknownName("setting", name, tuple(wanted), where="set", hint=f"one of {', '.join(wanted)}")
    return {name: _value(name, wanted[name], value) for name, value in given.items()}


def for_kind(name: str, kind: type, given: Mapping[str, object]) -> dict[str, object]:
    """Those of ``given`` that are meant for the preset ``name``: its own settings, or ``NAME.setting``.

    >>> from servewise.batching.policies import Vllm
    >>> for_kind("vllm", Vllm, {"max_num_seqs": 8, "sglang.max_prefill_tokens": 4096})
    {'max_num_seqs': 8}
    """
    wanted = {each.name for each in fields(kind)}
    found: dict[str, object] = {}
    for key, value in given.items():
        preset, dot, setting = key.rpartition(".")
        if (dot and preset == name) or (not dot and setting in wanted):
            found[setting] = value
    return found


def check_settings(presets: Mapping[str, type], given: Mapping[str, object], known: tuple[str, ...]) -> None:
    """Refuse what none of the ``presets`` asked for takes; ``known`` are all that there are."""
    if given and not presets:
        hint = f"policies with settings: {', '.join(known)}"
        raise InputError("no policy asked for is an engine's preset", where="set", hint=hint)
    for key in given:
        preset, _, setting = key.rpartition(".")
        if preset and preset not in presets:
            raise UnknownName("policy", preset, tuple(presets), where="set", hint=f"asked for: {', '.join(presets)}")
        kinds = (presets[preset],) if preset else presets.values()
        names = tuple(dict.fromkeys(each.name for kind in kinds for each in fields(kind)))
        if setting not in names:
            raise UnknownName("setting", setting, names, where="set", hint=f"one of {', '.join(names)}")


def pairs_of(texts: tuple[str, ...]) -> dict[str, str]:
    """``NAME=VALUE`` texts as a mapping; InputError for another form or a name given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"{text!r} is no setting", where="set", hint=HINT)
        name = name.replace("-", "_")
        if name in found:
            raise InputError(f"{name} is given twice", where="set", hint=HINT)
        found[name] = value
    return found


def _value(name: str, kind: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    if kind.startswith("bool"):
        if value.lower() not in _BOOLEANS:
            raise InputError(f"{name} is true or false, not {value!r}", where="set", hint=HINT)
        return _BOOLEANS[value.lower()]
    if kind.startswith(("int", "float")):
        return _number(name, kind, value)
    return value


def _number(name: str, kind: str, value: str) -> float | None:
    if value.lower() in ("none", "auto") and kind.endswith("None"):
        return None
    try:
        return int(value) if kind.startswith("int") else float(value)
    except ValueError:
        what = "a whole number" if kind.startswith("int") else "a number"
        raise InputError(f"{name} is {what}, not {value!r}", where="set", hint=HINT) from None
