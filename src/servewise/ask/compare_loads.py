"""The loads that two runs have in common, and what comparing each found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servewise.ask.runs import Condition
from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.metrics.comparison import Comparison
from servewise.metrics.comparison import compare as compare_summaries
from servewise.metrics.paired import compare_paired
from servewise.metrics.pairing import Matched, Pairs, pairs_of
from servewise.metrics.slo import Slo
from servewise.metrics.summary import RunSummary

Pair = tuple[Condition, Condition]  # of A and of B


@dataclass(frozen=True, slots=True)
class Compared:
    """One load of A and B: every metric, and how many requests were compared one by one (0, and ``why`` not)."""

    name: str
    a: Condition
    b: Condition
    rows: tuple[Comparison, ...]
    summaries: tuple[RunSummary, RunSummary]
    pairs: int = 0
    why: str = ""


def matched_loads(a: Sequence[Condition], b: Sequence[Condition]) -> tuple[list[tuple[str, Pair]], tuple[Caveat, ...]]:
    """The loads that both have (by name, else by load), and a caveat for those that one alone has."""
    if len(a) == 1 and len(b) == 1:
        return [("", (a[0], b[0]))], ()
    found = list(_same_name(a, b)) or list(_same_load(a, b))
    if not found:
        loads = [", ".join(each.name for each in side) for side in (a, b)]
        raise InputError(f"A and B have no load in common (A: {loads[0]}; B: {loads[1]})", where="compare")
    ours, theirs = ({id(pair[side]) for _, pair in found} for side in (0, 1))
    left = [each.name for each in a if id(each) not in ours], [each.name for each in b if id(each) not in theirs]
    return found, tuple(_left_out(*each) for each in zip("AB", left, strict=True) if each[1])


def _same_name(a: Sequence[Condition], b: Sequence[Condition]) -> Iterator[tuple[str, Pair]]:
    by_name = {each.name: each for each in b}
    yield from ((each.name, (each, by_name[each.name])) for each in a if each.name in by_name)


def _same_load(a: Sequence[Condition], b: Sequence[Condition]) -> Iterator[tuple[str, Pair]]:
    """By load, where a load stands once on each side."""
    for each in a:
        others = [other for other in b if other.key == each.key]
        if len(others) == 1 and sum(mine.key == each.key for mine in a) == 1:
            yield each.name, (each, others[0])


def _left_out(side: str, names: Sequence[str]) -> Caveat:
    message = f"only {side} has {', '.join(names[:5])}{' and more' if len(names) > 5 else ''}: not compared"
    return Caveat("not-in-both", message, "measure the same loads in both")


def compared(name: str, a: Condition, b: Condition, slo: Slo | None, seed: int) -> Compared:
    """One load of A and B: request by request where both ran the same ones, resampled by ``seed``."""
    summaries = a.summary(slo), b.summary(slo)
    found = _pairs(a, b)
    if isinstance(found, str):
        return Compared(name, a, b, compare_summaries(*summaries), summaries, 0, found)
    rows = compare_paired(found, summaries, seed=seed, slo=slo)
    return Compared(name, a, b, rows, summaries, sum(len(each.pairs) for each in found))


def _pairs(a: Condition, b: Condition) -> list[Matched] | str:
    """Repeat by repeat, the requests that are the same; or why they are not."""
    if any(run.told is not None for run in (*a.runs, *b.runs)):
        return "a result that keeps no requests"
    if len(a.runs) != len(b.runs):
        return f"A has {len(a.runs)} repeats, B {len(b.runs)}"
    found = []
    for ours, theirs in zip(a.runs, b.runs, strict=True):
        seeds = ours.record.seed, theirs.record.seed
        if None not in seeds and seeds[0] != seeds[1]:
            return f"their seeds differ ({seeds[0]} and {seeds[1]})"
        pairs = pairs_of(ours.part, theirs.part, same_seed=None not in seeds)
        if not isinstance(pairs, Pairs):
            return pairs
        found.append(Matched(ours.part, theirs.part, pairs))
    return found
