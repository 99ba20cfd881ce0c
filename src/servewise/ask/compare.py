"""Is B better than A, by how much, how sure is that, and does it keep what was claimed?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servewise.answer import Answer
from servewise.ask.differing import (
    difference_caveats,
    differences,
    fact_caveats,
    other_contents,
    over_loads,
    side_by_side,
)
from servewise.ask.numbers import whole
from servewise.ask.runs import Condition, caveats_beside, conditions_in
from servewise.caveats import Caveat, unique
from servewise.errors import InputError
from servewise.metrics.bootstrap import RESAMPLES
from servewise.metrics.claim import TOLERANCE, judge, parse_claim
from servewise.metrics.comparison import Comparison, Gate, parse_gates
from servewise.metrics.comparison import compare as compare_summaries
from servewise.metrics.paired import compare_paired
from servewise.metrics.pairing import Matched, Pairs, pairs_of
from servewise.metrics.slo import Slo, parse_slo
from servewise.metrics.summary import RunSummary

DEFAULT_METRIC = "output_tokens_per_s"


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


def compare(
    a: str | Path,
    b: str | Path,
    *,
    fail_if: str | None = None,
    claim: str | None = None,
    metric: str = DEFAULT_METRIC,
    tolerance: float = TOLERANCE,
    slo: str | Slo | None = None,
    seed: int = 0,
) -> Answer:
    """Every metric of run B against run A: the ratio, its 95% interval, the verdict.

    ``a`` and ``b``: run directories, measured or simulated; folders of runs, which are compared load by load; or result
    files of other clients (see ``measure.peers``). Runs of the same requests are compared request by request
    (``metrics.paired``, resampled by ``seed``), others as independent runs. ``fail_if``: gates like
    ``ttft_p95>+10%``. ``claim``: a speed-up like ``2.0x`` of ``metric``, kept within ``tolerance``. ``slo`` gives
    goodput too.
    """
    whole(seed, "seed", least=0)
    if claim is None and (metric != DEFAULT_METRIC or tolerance != TOLERANCE):
        where = "metric" if metric != DEFAULT_METRIC else "tolerance"
        raise InputError("is about a claim", where=where, hint="give --claim, e.g. 2.0x")
    gates = parse_gates(fail_if) if fail_if is not None else ()
    claimed = parse_claim(claim, metric, tolerance) if claim is not None else None
    objective = parse_slo(slo) if isinstance(slo, str) else slo
    sides = conditions_in(a), conditions_in(b)
    matched, left = _matched(*sides)
    compared = [_compared(name, *pair, objective, seed) for name, pair in matched]
    wholes = [
        over_loads([side.conditions for side in each]) for each in zip(*(pair for _, pair in matched), strict=True)
    ]
    found = [
        *differences(wholes[0], wholes[1], besides=() if len(matched) == 1 else ("load",)),
        *other_contents(*(pair[0].runs[0].record.sources for pair in zip(*(pair for _, pair in matched), strict=True))),
    ]
    return Answer(
        command="compare",
        conditions=side_by_side(dict(zip("AB", wholes, strict=True))),
        result={
            "rows": [_row(each, row, several=len(compared) > 1) for each in compared for row in each.rows],
            "a": _side(a, [each.a for each in compared]),
            "b": _side(b, [each.b for each in compared]),
            "conditions": [_condition_row(each) for each in compared],
            "differences": [each._asdict() for each in found],
            "gates": [_gate_row(gate, each) for each in compared for gate in gates],
            "claims": [
                {"condition": each.name} | judge(claimed, each.rows).to_json()
                for each in compared
                if claimed is not None
            ],
            "resamples": RESAMPLES,
            "seed": seed,
        },
        caveats=unique(
            (
                *difference_caveats(found),
                *_few_repeats(compared),
                *_facts(compared),
                *left,
                *_own_caveats(compared),
                *_kept_caveats(a, b),
            )
        ),
    )


def failing(answer: Answer) -> list[str]:
    """The gates that do not hold, in words."""
    return [
        f"{each['gate']}{' at ' + each['condition'] if each['condition'] else ''} ({100 * each['change']:+.1f}%)"
        for each in answer.result["gates"]
        if each["fails"]
    ]


def _matched(
    a: Sequence[Condition], b: Sequence[Condition]
) -> tuple[list[tuple[str, tuple[Condition, Condition]]], tuple[Caveat, ...]]:
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


def _same_name(a: Sequence[Condition], b: Sequence[Condition]) -> Iterator[tuple[str, tuple[Condition, Condition]]]:
    by_name = {each.name: each for each in b}
    yield from ((each.name, (each, by_name[each.name])) for each in a if each.name in by_name)


def _same_load(a: Sequence[Condition], b: Sequence[Condition]) -> Iterator[tuple[str, tuple[Condition, Condition]]]:
    """By load, where a load stands once on each side."""
    for each in a:
        others = [other for other in b if other.key == each.key]
        if len(others) == 1 and sum(mine.key == each.key for mine in a) == 1:
            yield each.name, (each, others[0])


def _left_out(side: str, names: Sequence[str]) -> Caveat:
    message = f"only {side} has {', '.join(names[:5])}{' and more' if len(names) > 5 else ''}: not compared"
    return Caveat("not-in-both", message, "measure the same loads in both")


def _compared(name: str, a: Condition, b: Condition, slo: Slo | None, seed: int) -> Compared:
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


def _row(compared: Compared, row: Comparison, *, several: bool) -> dict[str, Any]:
    return row.to_json() | ({"condition": compared.name} if several else {})


def _side(place: str | Path, conditions: Sequence[Condition]) -> dict[str, Any]:
    first = conditions[0]
    return {
        "name": Path(place).name or str(place),
        "kind": first.kind,
        "runs": sum(len(each.runs) for each in conditions),
        "conditions": over_loads([each.conditions for each in conditions]).to_json(),
    }


def _condition_row(compared: Compared) -> dict[str, Any]:
    a, b = compared.summaries
    return {
        "condition": compared.name,
        "paired": not compared.why,
        "pairs": compared.pairs,
        "why_not_paired": compared.why,
        "completed_a": a.completed,
        "completed_b": b.completed,
    }


def _gate_row(gate: Gate, compared: Compared) -> dict[str, Any]:
    ratio = next((row.ratio for row in compared.rows if row.metric == gate.metric), float("nan"))
    return {
        "gate": str(gate),
        "condition": compared.name,
        "change": ratio - 1,
        "fails": gate.fails(compared.rows),
        "certain": gate.is_certain(compared.rows),
    }


def _facts(compared: Sequence[Compared]) -> tuple[Caveat, ...]:
    return tuple(
        caveat
        for each in compared
        for caveat in fact_caveats(each.name, *each.summaries, (each.a.failed_share, each.b.failed_share))
    )


def _few_repeats(compared: Sequence[Compared]) -> tuple[Caveat, ...]:
    """A caveat where a side has two repeats: Student's t then multiplies their spread by 12.7, with three by 4.3."""
    two = [each for each in compared if each.why and 2 in (len(each.a.runs), len(each.b.runs))]
    if not two:
        return ()
    at = f" at {', '.join(each.name for each in two)}" if len(compared) > 1 else ""
    message = f"two repeats{at}: their interval is 12.7 standard errors wide to either side, of three 4.3"
    return (Caveat("two-repeats", message, "take three repeats or more of each (bench --repeats 3)"),)


def _own_caveats(compared: Sequence[Compared]) -> tuple[Caveat, ...]:
    """Those of the runs themselves, with whose they are."""
    return tuple(
        Caveat(caveat.code, f"{side}: {caveat.message}", caveat.cure)
        for each in compared
        for side, condition in (("A", each.a), ("B", each.b))
        for caveat in condition.caveats
    )


def _kept_caveats(a: str | Path, b: str | Path) -> tuple[Caveat, ...]:
    """Those of the answers that stand beside the runs."""
    return tuple(
        Caveat(each.code, f"{side}: {each.message}", each.cure)
        for side, place in (("A", a), ("B", b))
        for each in caveats_beside(place)
    )
