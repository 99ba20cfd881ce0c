"""Two runs' conditions side by side: what is the same, what differs, and what that makes of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.metrics.summary import RunSummary
from servewise.records.origin import Source, changed

ALMOST = 0.02  # lengths that differ by less are the same
FAILED_SHARE = 0.01
FILES = "the same files in both, unless they are what you compare"
_ALWAYS = ("model", "hardware", "precision", "lengths", "load")  # also where one run does not state it
_CURES = {
    "hardware": "measure both on the same hardware",
    "model": "serve the same model in both",
    "precision": "the same precision in both, unless precision is what you compare",
    "lengths": "the same input and output lengths in both",
    "load": "compare at the same streams or rate",
    "workload": "the same workload in both",
    "parallelism": "the same parallelism in both, unless that is what you compare",
    "experts": "the same --expert-load in both, unless that is what you compare",
    "engine": "the same engine in both, unless the engines are what you compare",
    "policy": "the same policy in both, unless the policies are what you compare",
    "estimator": "the same step times in both, unless they are what you compare",
    "version": "make both runs with one version of servewise",
}


class Difference(NamedTuple):
    """A condition that is not the same in both runs."""

    condition: str
    a: str
    b: str


def differences(a: Conditions, b: Conditions, *, besides: Sequence[str] = ()) -> list[Difference]:
    """The conditions in which the runs differ, without those ``besides``; one that a run does not state may be any."""
    found = []
    for name in _CURES:
        of_a, of_b = getattr(a, name), getattr(b, name)
        stated = of_a is not None and of_b is not None
        if of_a != of_b and name not in besides and (stated or name in _ALWAYS):
            found.append(Difference(name, of_a or "not stated", of_b or "not stated"))
    return found


def other_contents(a: Sequence[Source], b: Sequence[Source]) -> list[Difference]:
    """The files of one name that had another content in A than in B."""
    return [Difference(ours.of, f"{ours.name}, {ours}", f"{theirs.name}, {theirs}") for ours, theirs in changed(a, b)]


def difference_caveats(found: Sequence[Difference]) -> tuple[Caveat, ...]:
    """One for each, and one more where there are several: the ratio then belongs to none of them alone."""
    each = tuple(
        Caveat(
            "conditions-differ", f"{one.condition} differs (A: {one.a}; B: {one.b})", _CURES.get(one.condition, FILES)
        )
        for one in found
    )
    if len(found) < 2:
        return each
    names = ", ".join(one.condition for one in found)
    message = f"A and B differ in {len(found)} conditions at once ({names}): no ratio can be put down to one of them"
    return (*each, Caveat("confounded", message, "change one condition at a time"))


def fact_caveats(name: str, a: RunSummary, b: RunSummary, failed: tuple[float, float]) -> tuple[Caveat, ...]:
    """What differs in fact, whatever the conditions say: tokens in and out, and the shares that ``failed``."""
    at = f" at {name}" if name else ""
    found = []
    for words, key, moves in (
        ("prompts", "prompt_tokens", "TTFT"),
        ("answers", "output_tokens", "end-to-end latency and throughput"),
    ):
        of_a, of_b = (getattr(each, key) / each.completed if each.completed else 0.0 for each in (a, b))
        if of_a > 0 and of_b > 0 and abs(of_b / of_a - 1) > ALMOST:
            message = f"{words}{at} have {of_a:.4g} tokens on average in A, {of_b:.4g} in B, which moves {moves}"
            found.append(Caveat(f"{words}-differ", message, "fix the lengths (ignore_eos where the server has it)"))
    if abs(failed[0] - failed[1]) > FAILED_SHARE:
        message = f"{failed[0]:.1%} of the requests{at} failed in A, {failed[1]:.1%} in B: latencies are of the others"
        found.append(Caveat("failures-differ", message, "find out why they failed first"))
    return tuple(found)


def side_by_side(several: Mapping[str, Conditions]) -> Conditions:
    """Conditions of several runs by name: what all share, and ``A: ...; B: ...`` where they differ."""
    values: dict[str, object] = {}
    for each in fields(Conditions):
        found = {name: getattr(conditions, each.name) for name, conditions in several.items()}
        shared = len(set(found.values())) == 1
        if shared or each.name == "seeds":
            values[each.name] = next(iter(found.values())) if shared else None
        else:
            values[each.name] = "; ".join(f"{name}: {value or 'not stated'}" for name, value in found.items())
    return Conditions(**values)  # type: ignore[arg-type]


def over_loads(several: Sequence[Conditions]) -> Conditions:
    """Conditions of runs at several loads: the first's, with every load named."""
    loads = list(dict.fromkeys(each.load for each in several))
    return several[0].at(load=", ".join(loads))
