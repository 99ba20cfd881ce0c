"""What a measurement needs to be gone on with, kept before its first request: address and options, files, versions.

Keys and the values of headers are not kept. To go on is to measure what was begun: another option, a file that has
changed or another version is refused by name, since repeats of two set-ups have no interval in common.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from servewise.ask.bench_options import Asked, BenchOptions
from servewise.ask.bench_words import shown
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.measure.addressing import target_of
from servewise.measure.hiding import HIDDEN, shown_address
from servewise.measure.load.bodies import api_of
from servewise.records.begun import NAME, Begun, read_begun
from servewise.records.origin import Source, source_at
from servewise.version import __version__

COMMAND = "servewise bench"
FILES = ("trace", "prompts", "tokenizer")
NOT_COMPARED = ("api_key", "run_dir")
HINT = "leave it out, or measure anew in another folder"


def begun_of(wanted: Asked, conditions: Conditions, runs: tuple[str, ...] | None, line: str) -> Begun:
    """``wanted`` as it is kept; ``line`` is the command line that asked for it."""
    options = wanted.options
    asked = {
        "url": shown_address(wanted.target),
        "options": _plain({name: value for name, value in shown(options).items() if name != "run_dir"}),
        "files": {each.of: each.sha256 for each in sources_of(options)},
        "line": line,
        "keyed": options.api_key is not None,
        "version": __version__,
        "engine": None,
        "goes": [],
    }
    return Begun(command=COMMAND, conditions=conditions, runs=runs, asked=asked)


def begun_in(folder: Path) -> Begun:
    """The measurement that was begun in ``folder``; InputError where there is none."""
    begun = read_begun(folder)
    hint = "bench --run-dir begins one"
    if begun is None or begun.command != COMMAND:
        raise InputError("holds no measurement to go on with", where=str(folder), hint=hint)
    shape = {"url": str, "options": dict, "files": dict, "keyed": bool, "version": str, "goes": list}
    shaped = all(isinstance(begun.asked.get(name), kind) for name, kind in shape.items())
    if not (shaped and all(map(_is_going, begun.asked["goes"]))):
        raise InputError("does not say what was measured", where=str(folder), hint=hint)
    return begun


def _is_going(plain: Any) -> bool:
    return isinstance(plain, dict) and type(plain.get("after_s")) in (int, float)


def options_of(begun: Begun, folder: Path, url: str | None, given: Mapping[str, Any]) -> tuple[str, BenchOptions]:
    """Address and options of the measurement ``begun`` in ``folder``.

    ``given`` are options that the user names again, secrets among them; InputError for the first that differs.
    """
    asked = begun.asked
    _refuse_other("servewise", asked["version"], __version__, folder)
    for each in fields(BenchOptions):
        if each.name in given and each.name not in NOT_COMPARED:
            _refuse_option(each.name, asked["options"].get(each.name), given[each.name], folder)
    options = _options(asked["options"], given, folder)
    if asked["keyed"] and options.api_key is None:
        raise InputError("was begun with a key, which is not kept", where=str(folder), hint="give --api-key again")
    if asked["options"].get("headers") and not options.headers:
        names = ", ".join(asked["options"]["headers"])
        raise InputError(f"was begun with headers ({names}); no value is kept", where=str(folder), hint="give --header")
    now = {each.of: each.sha256 for each in sources_of(options)}
    for name, held in asked["files"].items():
        if now.get(name) != held:
            raise InputError(f"was begun with another content of --{name}", where=str(folder), hint=HINT)
    return _address(asked["url"], url, options, folder), options


def _options(kept: Mapping[str, Any], given: Mapping[str, Any], folder: Path) -> BenchOptions:
    secret: dict[str, Any] = {name: given[name] for name in ("api_key", "headers") if name in given}
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()}
    _refuse_damaged(values, folder)
    values.pop("headers", None)
    try:
        return BenchOptions(**(values | secret | {"run_dir": str(folder)}))
    except TypeError as error:
        raise InputError("was begun with options of another version", where=str(folder), hint=HINT) from error


def _refuse_damaged(values: Mapping[str, Any], folder: Path) -> None:
    """InputError for the first option that is not as ``bench`` writes it: somebody has edited the file."""
    kinds = get_type_hints(BenchOptions)
    for name, value in values.items():
        if name in NOT_COMPARED or (name in kinds and not _is_a(kinds[name], value)):
            what = f"has no value of --{name.replace('_', '-')} that bench writes"
            raise InputError(what, where=str(folder / NAME), hint="measure anew in another folder")


def _is_a(kind: Any, value: Any) -> bool:
    """Whether ``value`` is of the annotation ``kind``; a whole number is also a float, a truth value is neither."""
    if isinstance(kind, UnionType):
        return any(_is_a(each, value) for each in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(_is_a(get_args(kind)[0], each) for each in value)
    if kind is str:
        return isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)
    return type(value) is kind or (kind is float and type(value) is int)


def _address(kept: str, given: str | None, options: BenchOptions, folder: Path) -> str:
    if given is None:
        if HIDDEN in kept:
            raise InputError("the address's query is not kept", where=str(folder), hint="give the URL again")
        return kept
    again = shown_address(target_of(given, model=options.model, api=api_of(options.api)))
    _refuse_other("the server at", kept, again, folder)
    return given


def _refuse_option(name: str, kept: Any, given: Any, folder: Path) -> None:
    """``headers`` are compared by their names."""
    plain = [each.partition(":")[0] for each in given] if name == "headers" else _plain(given)
    alone = kept if isinstance(kept, list) or not isinstance(plain, list) else [kept]  # one of several, given alone
    if plain != alone:
        _refuse_other(f"--{name.replace('_', '-')}", _words(kept), _words(plain), folder)


def _refuse_other(what: str, kept: str, given: str, folder: Path) -> None:
    if kept != given:
        raise InputError(f"was begun with {what} {kept}, not {given}", where=str(folder), hint=HINT)


def _words(value: Any) -> str:
    if value is None:
        return "left out"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value))


def sources_of(options: BenchOptions) -> tuple[Source, ...]:
    """The files that the load is made of (a shipped trace is no file)."""
    paths = {name: Path(value) for name in FILES if (value := getattr(options, name)) is not None}
    return tuple(source_at(name, path) for name, path in paths.items() if path.is_file())


def line_of(begun: Begun) -> str:
    """The command line that began it; of one begun by an earlier version, the command."""
    line = begun.asked.get("line")
    return line if isinstance(line, str) else begun.command
