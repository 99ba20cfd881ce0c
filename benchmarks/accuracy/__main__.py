"""Every reference set on one page: python -m benchmarks.accuracy [--write].

Read from the results of record, which each set's own command makes anew; ``--write`` puts the page into
docs/accuracy.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.accuracy.page.reference_set import ReferenceSet
from benchmarks.accuracy.page.sets import all_sets
from benchmarks.accuracy.published_effects import recorded_effects
from benchmarks.record import table

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
HEAD = """# How accurate is it

Every reference set that predictions are held against, as the results of record have it (`benchmarks/results`, with
machine and date). Errors are relative, |predicted / measured - 1|; "bar" is the median that was to be reached. Printed
by `python -m benchmarks.accuracy`; each row's own command measures it anew.
"""
COLUMNS = ("reference", "what", "standing", "n", "median", "p90", "worst", "bar", "met")


def cells(each: ReferenceSet) -> list[str]:
    """A row of the page."""
    shares = [_percent(value) for value in (each.median, each.p90, each.worst)]
    bar = _percent(each.bar) + ("" if each.p90_bar is None else f", p90 {each.p90_bar:.0%}")
    return [each.reference, each.what, each.standing, f"{each.n:,}", *shares, bar, each.met]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def page() -> str:
    """The page in Markdown."""
    sets = all_sets()
    parts = [HEAD, *_by_command(sets), *_effects()]
    return "\n".join(parts)


def _by_command(sets: list[ReferenceSet]) -> list[str]:
    lines: list[str] = []
    for command in dict.fromkeys(each.command for each in sets):
        rows = [cells(each) for each in sets if each.command == command]
        lines += [f"## `{command}`\n", *_markdown(COLUMNS, rows), ""]
    return lines


def _effects() -> list[str]:
    rows = [
        [each["name"], each["published"], f"{each['ours']:.2f}", "yes" if each["holds"] else f"NO: {each['why']}"]
        for each in recorded_effects()
    ]
    lines = _markdown(("effect", "published", "ours, as a factor or share", "within"), rows)
    return ["## `python -m benchmarks.accuracy.published_effects`\n", *lines, ""]


def _markdown(header: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def main() -> None:
    """Print the page, or write it."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), "utf-8")
        return
    table((*COLUMNS, "command"), [[*cells(each), each.command.rpartition(".")[2]] for each in all_sets()])
    print()
    rows = [[each["name"], each["published"], each["ours"], each["holds"]] for each in recorded_effects()]
    table(("effect", "published", "ours", "within"), rows)


if __name__ == "__main__":
    main()
