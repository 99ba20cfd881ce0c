"""What a reader must know beside a comparison of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from servewise.ask.compare_loads import Compared
from servewise.ask.differing import fact_caveats
from servewise.ask.runs import caveats_beside
from servewise.caveats import Caveat


def compare_caveats(
    a: str | Path, b: str | Path, loads: Sequence[Compared], left: tuple[Caveat, ...]
) -> tuple[Caveat, ...]:
    """Of few repeats, of what the runs show, of loads ``left`` out, of the runs, and of the answers beside them."""
    return _few_repeats(loads) + _facts(loads) + left + _own_caveats(loads) + _kept_caveats(a, b)


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
