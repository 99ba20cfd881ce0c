"""An answer taken along: its document, its lists as CSV in SI units, its charts as files of their own."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from servewise.answer import Answer, finite

FACTS, SECTIONS = "facts", "sections"
_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_VARIABLE = re.compile(r"var\(--[\w-]+, (#[0-9a-fA-F]{3,8})\)")


def csv_parts(answer: Answer) -> tuple[str, ...]:
    """The names of what can be had as CSV: each list of rows in the result, its sections' too, and the single facts."""
    return (*_lists(answer.result), *([FACTS] if _single(answer.result) else []))


def csv_of(answer: Answer, part: str) -> str:
    """That part as CSV: a heading, then a line a row; nested values under dotted names, in the document's units."""
    if part == FACTS:
        rows = [{"name": name, "value": value} for name, value in _flat(finite(_single(answer.result)), "")]
    else:
        rows = [dict(_flat(finite(row), "")) for row in _lists(answer.result)[part]]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _single(result: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in the result beside lists of rows and sections."""
    return {key: value for key, value in result.items() if not _is_rows(value) and key != SECTIONS}


def _lists(result: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The lists of rows by name; those of a section under the section's number."""
    found = {key: value for key, value in result.items() if _is_rows(value)}
    for number, section in enumerate(result.get(SECTIONS, {}).values(), start=1):
        inner = {key: value for key, value in section["result"].items() if _is_rows(value)}
        found |= {f"{number}-{key}": value for key, value in inner.items()}
    return found


def svg_file(svg: str) -> str:
    """A chart of a page as a file: its colours its own instead of the page's, its size that of its box in points.

    >>> svg_file('<svg viewBox="0 0 40 30" style="fill: var(--ink, #1b2028)"></svg>').splitlines()[1]
    '<svg width="40pt" height="30pt" viewBox="0 0 40 30" style="fill: #1b2028"></svg>'
    """
    sized = _BOX.sub(r'width="\1pt" height="\2pt" \g<0>', svg, count=1)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _VARIABLE.sub(r"\1", sized) + "\n"


def _is_rows(value: object) -> bool:
    return isinstance(value, Sequence) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _flat(value: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{before}{key}.")
        elif isinstance(inner, list):
            yield from _flat({str(place): each for place, each in enumerate(inner)}, f"{before}{key}.")
        else:
            yield f"{before}{key}", inner


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
