"""The file of a calibration: a small TOML that every predicting command takes by ``--estimator FILE.toml``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from servewise.errors import InputError
from servewise.steptime.calibration import Assumed, Calibration, Fitted, Setting
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.server_coefficients import BOUNDS, COEFFICIENTS
from servewise.tables import Unit, as_list, as_number, as_table, as_text, needs, only, read_toml

SCHEMA = "servewise.calibration/1"
HINT = "servewise calibrate writes such files"
SETTING = tuple(each.name for each in fields(Setting))
TEXTS = ("policy", "source", "measured", "version")
ERRORS = ("train_median", "train_p90", "heldout_median", "heldout_p90")
RANGES = tuple(each.name for each in fields(ValidRange))
KEYS = ("schema", *SETTING, *TEXTS, "runs", "spread", "coefficients", "assumed", "errors", "valid_range")
SHARE = Unit("as a share", 0.0, 1e3, "0.05 is 5%")
TOKENS = Unit("", 0, 1e12, "a whole number")


def load_calibration(path: str | Path) -> Calibration:
    """The calibration in a TOML file. Raises InputError for a file that is none, with the key that is wrong."""
    where = str(path)
    table = read_toml(Path(path))
    if table.get("schema") != SCHEMA:
        what = f"has the schema {str(table.get('schema'))[:60]!r}, where {SCHEMA!r} is read"
        raise InputError(what, where=where, hint=HINT)
    only(table, KEYS, where)
    needs(table, ("coefficients", *SETTING), where)
    fitted, assumed = (as_table(table.get(name, {}), f"{where}: {name}") for name in ("coefficients", "assumed"))
    _each_once(fitted, assumed, where)
    return Calibration(
        setting=Setting(**{name: as_text(table[name], f"{where}: {name}") for name in SETTING}),
        fitted={name: _fitted(each, name, f"{where}: coefficients.{name}") for name, each in fitted.items()},
        assumed={name: _assumed(each, name, f"{where}: assumed.{name}") for name, each in assumed.items()},
        **{name: as_text(table.get(name, ""), f"{where}: {name}") for name in TEXTS},
        runs=tuple(as_text(each, f"{where}: runs") for each in as_list(table.get("runs", []), f"{where}: runs")),
        errors=_errors(table.get("errors", {}), f"{where}: errors"),
        spread=as_number(table.get("spread", 0.0), SHARE, f"{where}: spread"),
        valid_range=_range(table["valid_range"], f"{where}: valid_range") if "valid_range" in table else None,
    )


def calibration_toml(calibration: Calibration) -> str:
    """The file's text."""
    lines = [f"schema = {_text(SCHEMA)}"]
    lines += [f"{name} = {_text(getattr(calibration.setting, name))}" for name in SETTING]
    lines += [f"{name} = {_text(getattr(calibration, name))}" for name in TEXTS]
    lines += [f"runs = [{', '.join(map(_text, calibration.runs))}]", f"spread = {_number(calibration.spread)}"]
    lines += ["", "[coefficients]  # seconds, shares of the accelerator's own rates, tokens"]
    for name, known in calibration.fitted.items():
        low, high = known.ci95
        lines += [f"{name} = {{ value = {_number(known.value)}, ci95 = [{_number(low)}, {_number(high)}] }}"]
    if calibration.assumed:
        lines += ["", "[assumed]  # what the runs cannot tell"]
    for name, taken in calibration.assumed.items():
        told = f"why = {_text(taken.why)}, measure = {_text(taken.measure)}"
        lines += [f"{name} = {{ value = {_number(taken.value)}, {told} }}"]
    if calibration.errors:
        lines += ["", "[errors]  # |predicted / measured - 1|"]
        lines += [f"{name} = {_number(value)}" for name, value in calibration.errors.items()]
    if calibration.valid_range is not None:
        pairs = ((name, getattr(calibration.valid_range, name)) for name in RANGES)
        lines += ["", "[valid_range]", *(f"{name} = [{low}, {high}]" for name, (low, high) in pairs)]
    return "\n".join(lines) + "\n"


def _each_once(fitted: Mapping[str, Any], assumed: Mapping[str, Any], where: str) -> None:
    only(fitted, COEFFICIENTS, f"{where}: coefficients")
    only(assumed, COEFFICIENTS, f"{where}: assumed")
    needs({**fitted, **assumed}, COEFFICIENTS, f"{where}: coefficients")
    twice = [name for name in fitted if name in assumed]
    if twice:
        raise InputError(f"{twice[0]} is both a coefficient and assumed", where=where)


def _unit(name: str) -> Unit:
    low, high = BOUNDS[name]
    unit = "s" if name.endswith("_s") else "tokens" if name == "ramp_tokens" else "of 1"
    return Unit(unit, low, high, f"from {low:g} to {high:g}")


def _fitted(value: Any, name: str, where: str) -> Fitted:
    table = as_table(value, where)
    only(table, ("value", "ci95"), where)
    needs(table, ("value", "ci95"), where)
    unit = _unit(name)
    pair = [as_number(each, unit, f"{where}: ci95") for each in as_list(table["ci95"], f"{where}: ci95")]
    number = as_number(table["value"], unit, where)
    if len(pair) != 2 or not pair[0] <= number <= pair[1]:
        raise InputError("ci95 must be two numbers around the value", where=where)
    return Fitted(value=number, ci95=(pair[0], pair[1]))


def _assumed(value: Any, name: str, where: str) -> Assumed:
    table = as_table(value, where)
    only(table, ("value", "why", "measure"), where)
    needs(table, ("value", "why", "measure"), where)
    why, measure = (as_text(table[key], f"{where}: {key}") for key in ("why", "measure"))
    return Assumed(value=as_number(table["value"], _unit(name), where), why=why, measure=measure)


def _errors(value: Any, where: str) -> dict[str, float]:
    table = as_table(value, where)
    only(table, ERRORS, where)
    return {name: as_number(each, SHARE, f"{where}: {name}") for name, each in table.items()}


def _range(value: Any, where: str) -> ValidRange:
    table = as_table(value, where)
    only(table, RANGES, where)
    needs(table, RANGES, where)
    return ValidRange(**{name: _pair(table[name], f"{where}: {name}") for name in RANGES})


def _pair(value: Any, where: str) -> tuple[int, int]:
    pair = [as_number(each, TOKENS, where) for each in as_list(value, where)]
    if len(pair) != 2 or pair[0] > pair[1] or any(each != int(each) for each in pair):
        raise InputError("must be the lowest and the highest, two whole numbers", where=where)
    return int(pair[0]), int(pair[1])


def _text(words: str) -> str:
    plain = words.encode("utf-8", "replace").decode()
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML's basic strings take JSON's escapes


def _number(value: float) -> str:
    return f"{value:.6g}" if value != int(value) else f"{value:.1f}"
