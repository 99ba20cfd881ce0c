"""Lengths and arrivals in one word each, as a command's option takes them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from servewise.errors import InputError
from servewise.workload import checks
from servewise.workload.arrivals import Arrivals, Constant, Gamma, Poisson, Ramp
from servewise.workload.lengths import Empirical, Fixed, Lengths, Lognormal, Uniform

LENGTHS = "512, 128-1024, lognormal:608,1.2 (median, sigma; or mean=, p95=, cap=), or values:100,200,300"
ARRIVALS = "poisson, constant, gamma:CV, or ramp:START-END,SECONDS"
SPREADS = ("sigma", "mean", "p95")


def written_lengths(text: str, *, where: str = "") -> Lengths:
    """The distribution of whole tokens that ``text`` names; InputError shows what may be written.

    >>> print(written_lengths("128-1024"), written_lengths("lognormal:608,mean=968,cap=32768"))
    128-1024 lognormal(median 608, sigma 0.964, cap 32768)
    """
    with _placed(where):
        return _lengths(text.strip())


def written_arrivals(text: str, rate_per_s: float | None = None, *, where: str = "") -> Arrivals:
    """The arrival process that ``text`` names, at ``rate_per_s`` (a ramp has its own, which a given rate scales).

    >>> print(written_arrivals("gamma:3", 2.0), "|", written_arrivals("ramp:1-5,60"))
    gamma 2/s, CV 3 | ramp 1-5/s over 60 s
    """
    with _placed(where):
        return _arrivals(text.strip(), rate_per_s)


def _lengths(text: str) -> Lengths:
    kind, _, rest = text.partition(":")
    if re.fullmatch(r"\d+", text):
        return Fixed(_whole(text))
    if bounds := re.fullmatch(r"(\d+)-(\d+)", text):
        return Uniform(_whole(bounds[1]), _whole(bounds[2]))
    if kind == "lognormal":
        return _lognormal(rest.split(","))
    if kind == "values":
        return Empirical([_whole(each) for each in rest.split(",")], "given values")
    raise InputError(f"{checks.shown(text)} is no length in tokens", hint=f"write {LENGTHS}")


def _arrivals(text: str, rate_per_s: float | None) -> Arrivals:
    kind, _, rest = text.partition(":")
    if kind == "ramp":
        ramp = _ramp(rest)
        return ramp if rate_per_s is None else ramp.at_rate(rate_per_s)
    if kind not in ("poisson", "constant", "gamma") or (kind == "gamma") != bool(rest):
        raise InputError(f"{checks.shown(text)} are no arrivals", hint=f"write {ARRIVALS}")
    if rate_per_s is None:
        raise InputError(f"{kind} arrivals need a rate", hint="give requests per second")
    if kind == "gamma":
        return Gamma(rate_per_s, _number(rest))
    return Poisson(rate_per_s) if kind == "poisson" else Constant(rate_per_s)


def _lognormal(parts: Sequence[str]) -> Lognormal:
    """``MEDIAN,SIGMA`` or ``MEDIAN,NAME=VALUE`` with one of sigma, mean, p95, and cap if wanted."""
    pairs = (part.partition("=") for part in parts[1:])
    named = {name if equals else "sigma": value if equals else name for name, equals, value in pairs}
    spread = [name for name in named if name in SPREADS]
    if len(spread) != 1 or len(named) != len(parts) - 1 or not set(named) <= {*SPREADS, "cap"}:
        raise InputError("a lognormal needs its median and one of sigma, mean, p95", hint=LENGTHS)
    median, value = _number(parts[0]), _number(named[spread[0]])
    cap = _whole(named["cap"]) if "cap" in named else None
    if spread == ["sigma"]:
        return Lognormal(median, value, cap)
    return (Lognormal.from_mean if spread == ["mean"] else Lognormal.from_percentile)(median, value, cap=cap)


def _ramp(rest: str) -> Ramp:
    found = re.fullmatch(r"([^-,]+)-([^-,]+),([^,]+)", rest)
    if found is None:
        raise InputError(f"{checks.shown(rest)} is no ramp", hint="write ramp:START-END,SECONDS")
    return Ramp(*(_number(part) for part in found.groups()))


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError as error:
        raise InputError(f"{checks.shown(text)} is no number") from error
    if not math.isfinite(found):
        raise InputError(f"{checks.shown(text)} is no finite number")
    return found


def _whole(text: str) -> int:
    found = _number(text)
    return checks.tokens(found, "a length")


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """An InputError inside that does not say where it stands says ``where``."""
    try:
        yield
    except InputError as error:
        if error.where or not where:
            raise
        raise InputError(error.what, where=where, hint=error.hint) from error
