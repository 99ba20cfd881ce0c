"""What a fleet's options say as text: failures, an autoscaler, splits, further replicas, a link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from servewise.ask.names import AcceleratorLike
from servewise.ask.numbers import positive, whole
from servewise.errors import InputError, UnknownName
from servewise.hardware.accelerator import Accelerator
from servewise.simulate.fleet.autoscale import METRICS, Autoscale
from servewise.simulate.fleet.outage import Outage
from servewise.steptime.link import LinkTime, link_time

MOST_REPLICAS = 1024
_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
_TIME = r"(\d+\.?\d*(?:e[+-]?\d+)?)\s*(us|ms|s|min|h|)"
_FAILURE = re.compile(rf"r(\d+)@{_TIME}(?::{_TIME})?")
_SPLIT = re.compile(r"(\d+)p(\d+)d")
_FURTHER = re.compile(r"(\d+):([^@]+?)(?:@(\d+\.?\d*))?")
_RATE = re.compile(rf"(\d+\.?\d*(?:e[+-]?\d+)?)\s*([kmgt]?b)/s(?::{_TIME})?")
_BYTES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_SCALE = {
    "min": "least",
    "max": "most",
    "every": "interval_s",
    "start": "startup_s",
    "settle": "settle_s",
}
Split = tuple[int, int]  # prefill servers, decode servers


@dataclass(frozen=True, slots=True)
class Further:
    """``count`` further replicas on ``accelerator``, each with the weight for the router."""

    count: int
    accelerator: AcceleratorLike
    weight: float = 1.0


def failures_of(given: str | Iterable[str | Outage]) -> tuple[Outage, ...]:
    """``r0@60s:120s`` (replica 0 dies at 60 s and is up again at 120 s), ``r1@90s`` (for good); with commas.

    >>> failures_of("r0@60s:2min")
    (Outage(number=0, at_s=60.0, back_s=120.0),)
    """
    return tuple(each if isinstance(each, Outage) else _failure(each) for each in _parts(given))


def _failure(text: str) -> Outage:
    found = _FAILURE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{text!r} is no failure", where="fail", hint="write r0@60s:120s, or r0@60s for good")
    number, at, unit, back, back_unit = found.groups()
    at_s = float(at) * _SECONDS[unit]
    return Outage(int(number), at_s) if back is None else Outage(int(number), at_s, float(back) * _SECONDS[back_unit])


def autoscale_of(given: str | Autoscale | None) -> Autoscale | None:
    """``load=0.7,min=1,max=8,every=15s,start=2min,settle=5min``, or ``wait=2s,...``; what is left out is the default.

    >>> autoscale_of("wait=2s,max=4").most
    4
    """
    if given is None or isinstance(given, Autoscale):
        return given
    found: dict[str, Any] = {}
    for part in _parts(given):
        name, equals, value = (each.strip() for each in str(part).partition("="))
        if name not in (*METRICS, *_SCALE) or not equals:
            known = ", ".join((*METRICS, *_SCALE))
            raise UnknownName("setting", name, (*METRICS, *_SCALE), where="autoscale", hint=f"NAME=VALUE of {known}")
        if name in METRICS:
            if "metric" in found:
                raise InputError("load and wait are two targets", where="autoscale", hint="give one of them")
            found |= {"metric": name, "target": seconds_of(value, f"autoscale {name}")}
        elif name in ("min", "max"):
            found[_SCALE[name]] = whole(
                int(value) if value.isdecimal() else value, f"autoscale {name}", most=MOST_REPLICAS
            )
        else:
            found[_SCALE[name]] = seconds_of(value, f"autoscale {name}")
    if "metric" not in found:
        raise InputError("has no target", where="autoscale", hint="load=0.7 or wait=2s")
    return Autoscale(**found)


def seconds_of(text: str, where: str) -> float:
    """``15s``, ``2min``, ``0.7`` [s, or a plain number]."""
    found = re.fullmatch(_TIME, text.strip())
    if found is None:
        raise InputError(f"{text!r} is no time", where=where, hint="write it like 15s or 2min")
    return float(found[1]) * _SECONDS[found[2]]


def splits_of(given: str | Iterable[str | Split], replicas: int | None) -> tuple[Split, ...]:
    """``2P2D,1P3D``; ``all``: every split of ``replicas``. All have as many servers, ``replicas`` if that is given.

    >>> splits_of("all", 4)
    ((1, 3), (2, 2), (3, 1))
    """
    if given == "all":
        total = whole(replicas, "replicas", least=2, most=MOST_REPLICAS)
        return tuple((prefills, total - prefills) for prefills in range(1, total))
    found = tuple(dict.fromkeys(each if isinstance(each, tuple) else _split(each) for each in _parts(given)))
    totals = {sum(each) for each in found} | ({replicas} if replicas and found else set())
    if len(totals) > 1:
        what = f"splits are compared at an equal number of servers, not {', '.join(map(str, sorted(totals)))}"
        raise InputError(what, where="disaggregate", hint="e.g. 1P3D,2P2D with 4 replicas")
    return found


def _split(text: str) -> Split:
    found = _SPLIT.fullmatch(text.strip().lower())
    if found is None or not (int(found[1]) and int(found[2])):
        raise InputError(f"{text!r} is no split", where="disaggregate", hint="2P2D: two prefill and two decode servers")
    return whole(int(found[1]), "disaggregate", most=MOST_REPLICAS), whole(
        int(found[2]), "disaggregate", most=MOST_REPLICAS
    )


def further_of(given: str | Iterable[str | Further]) -> tuple[Further, ...]:
    """``2:a100-80gb@0.5``: two further replicas on that accelerator, of half the first ones' weight.

    >>> further_of("2:a100-80gb@0.5")
    (Further(count=2, accelerator='a100-80gb', weight=0.5),)
    """
    return tuple(each if isinstance(each, Further) else _further(each) for each in _parts(given))


def _further(text: str) -> Further:
    found = _FURTHER.fullmatch(text.strip())
    if found is None:
        raise InputError(
            f"{text!r} names no replicas", where="also", hint="COUNT:ACCELERATOR[@WEIGHT], 2:a100-80gb@0.5"
        )
    weight = positive(float(found[3]), "also") if found[3] else 1.0
    return Further(whole(int(found[1]), "also", most=MOST_REPLICAS), found[2], weight)


def link_of(given: str | Accelerator | LinkTime) -> LinkTime:
    """A network or an accelerator's own link by name, or one's own numbers: ``50GB/s`` or ``50GB/s:10us`` of latency.

    >>> link_of("50GB/s:10us").seconds(5e9)
    0.10001
    """
    if isinstance(given, LinkTime):
        return given
    found = _RATE.fullmatch(given.strip().lower()) if isinstance(given, str) else None
    if found is None:
        return link_time(given)
    number, unit, latency, latency_unit = found.groups()
    rate = positive(float(number) * _BYTES[unit], "link")
    latency_s = 0.0 if latency is None else float(latency) * _SECONDS[latency_unit]
    return LinkTime(latency_s, rate, str(given).strip(), "assumed", "given by the user")


def _parts(given: str | Iterable[Any]) -> Sequence[Any]:
    parts = given.split(",") if isinstance(given, str) and given else given
    return [each for part in parts for each in (part.split(",") if isinstance(part, str) else [part])]
