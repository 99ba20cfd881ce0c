"""Options as the engine's own parser takes them: unknown, misspelt, removed, deprecated, contradictory, bad values."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from servewise.check.engines.launch import Given, Launch
from servewise.check.engines.options import Options, Spec, is_negative, options_of, spelt
from servewise.check.engines.removed import REMOVED
from servewise.check.engines.settings import NAMES, Settings, number_of, whole_of
from servewise.check.finding import Finding, found

WHOLE = ("tensor", "pipeline", "data", "context", "sequences", "batched", "nodes")
OPEN = ("auto", "all", "-1")
NEAR = 0.87
REPEATABLE = frozenset(
    (
        "--lora-modules",
        "--middleware",
        "--api-key",
        "--override-kv",
        "--lora",
        "--override-tensor",
        "--set",
        "--device",
        "--allowed-origins",
        "--custom-module-dirs",
        "--control-vector",
        "--served-model-name",
        "--lora-paths",
    )
)


def options(settings: Settings) -> Iterator[Finding]:
    """The mistakes of options in one launch."""
    launch = settings.launch
    known = options_of(launch.engine)
    for each in {one.written: one for one in launch.given}.values():
        yield from _one(each, launch, known)
    yield from _twice(launch)
    for setting in WHOLE:
        yield from _whole(settings, setting)


def _one(each: Given, launch: Launch, known: Options) -> Iterator[Finding]:
    removed = REMOVED[launch.engine]
    gone = removed.get(spelt(each.written)) or removed.get(each.name)
    if gone is not None and (each.spec is None or launch.engine == "llamacpp"):
        yield found("removed-option", each.at, f"{each.written} is no option of {_who(known)}.", cure=f"Now: {gone}.")
    elif each.spec is None:
        yield from _unknown(each, launch, known)
    elif each.spec.deprecated:
        yield found("deprecated-option", each.at, f"{each.written} is deprecated in {_who(known)}.")
    elif each.value is not None and each.spec.takes in ("one", "optional"):
        yield from _choice(each)
    elif launch.site.kind != "config" and launch.engine != "llamacpp":  # its own documents still write -fa alone
        yield from _arity(each, each.spec)


def _arity(each: Given, spec: Spec) -> Iterator[Finding]:
    """A value after a switch, or an option without its value: the parser refuses both."""
    if spec.takes == "none" and each.values:
        off = next((name for name in spec.names if is_negative(name)), "")
        cure = f"{off or 'Leave it out'} to switch it off; {each.written} alone switches it on."
        yield found("bad-value", each.at, f"{each.written} is a switch: it takes no value {each.value}.", cure=cure)
    elif spec.takes == "one" and not each.values:
        yield found("bad-value", each.at, f"{each.written} stands without its value.", cure="Give it, or leave it out.")


def _who(known: Options) -> str:
    return f"{known.engine} {known.version}"


def _unknown(each: Given, launch: Launch, known: Options) -> Iterator[Finding]:
    if launch.site.kind == "config" or (launch.engine == "trtllm" and not each.written.startswith("-")):
        return
    name = spelt(each.written)
    if not name.startswith("--"):
        return
    near = difflib.get_close_matches(name, [key for key in known.by_name if key.startswith("--")], 1, NEAR)
    if near and _only_misspelt(name, near[0]) and not known.beginning(name):
        why = f"{each.written} is no option of {_who(known)}, {near[0]} is."
        yield found("misspelt-option", each.at, why, cure=f"{near[0]}.")
    else:
        yield found("unknown-option", each.at, f"{each.written} is no option of {_who(known)} ({known.address}).")


def _only_misspelt(name: str, near: str) -> bool:
    """As many words, each close to its own: a typo, not another option."""
    ours, theirs = name[2:].split("-"), near[2:].split("-")
    alike = [difflib.SequenceMatcher(None, a, b).ratio() for a, b in zip(ours, theirs, strict=False)]
    return abs(len(ours) - len(theirs)) <= 1 and sum(each == 1.0 for each in alike) >= len(theirs) - 1


def _choice(each: Given) -> Iterator[Finding]:
    choices = each.spec.choices if each.spec else ()
    value = str(each.value)
    if not choices or value in choices or any(mark in value for mark in "$<{[") or value.lower() in choices:
        return
    near = difflib.get_close_matches(value, choices, 1, 0.6)
    hint = f"{near[0]}?" if near else ", ".join(choices[:12]) + (", ..." if len(choices) > 12 else "") + "."
    if near:
        yield found("bad-value", each.at, f"{each.written} does not take {value!r}.", cure=f"Did you mean {hint}")
    else:
        yield found(
            "bad-value", each.at, f"{each.written} does not take {value!r}.", cure=f"One of: {hint}", severity="warning"
        )


def _twice(launch: Launch) -> Iterator[Finding]:
    """The same option with two values, or switched on and off."""
    last: dict[str, Given] = {}
    for each in launch.given:
        key = "--" + each.name.removeprefix("--no-").removeprefix("--")
        before = last.get(key)
        last[key] = each
        if before is None or key in REPEATABLE:
            continue
        if is_negative(before.name) != is_negative(each.name):
            yield found("contradictory-options", each.at, f"{before.written} and {each.written}: the last one wins.")
        elif before.values != each.values and each.spec is not None and each.spec.takes in ("one", "optional"):
            why = f"{each.written} is given twice, {before.value} and {each.value}: the last one wins."
            yield found("contradictory-options", each.at, why)


def _whole(settings: Settings, setting: str) -> Iterator[Finding]:
    if setting not in NAMES[settings.launch.engine]:
        return
    option = settings.given(setting)
    if option is None:
        return
    value = "" if option.value is None else str(option.value)
    if any(mark in value for mark in "$<{[(") or value.lower() in OPEN:
        return
    number = whole_of(value)
    wrong = number is None or (number_of(value) is not None and not float(value).is_integer())
    zero = number is not None and (number < 0 or (number == 0 and settings.launch.engine != "llamacpp"))
    if wrong or (zero and not (setting == "batched" and number == -1)):
        said = f"{option.written} {value or '(nothing)'} is no whole number above 0."
        yield found("bad-value", option.at, said, cure="A whole number.")
