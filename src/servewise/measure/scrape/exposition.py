"""Prometheus' text format, read strictly and only as far as it is wanted.

Format: prometheus.io/docs/instrumenting/exposition_formats, text version 0.0.4 (read 2026-11). A line is ``name``,
``{label="value", ...}`` or nothing, a value as Go's ParseFloat reads it, and a timestamp or nothing. Lines of other
metrics are passed over without a look inside: a page of thousands of histogram buckets costs its splitting.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from servewise.errors import InputError

MAX_BYTES = 16_000_000
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*[ \t]*=[ \t]*"(?:[^"\\\n]|\\.)*"'
_LABELS = rf"\{{[ \t]*(?:{_LABEL}[ \t]*(?:,[ \t]*{_LABEL}[ \t]*)*,?)?[ \t]*\}}"
_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[Ii]nf(?:inity)?|[Nn]a[Nn])"
_SAMPLE = re.compile(
    rf"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*({_LABELS})?[ \t]*(?<=[ \t\}}])({_NUMBER})(?:[ \t]+-?\d+)?[ \t]*"
)
_NAME_END = re.compile(r"[ \t{]")


class Sample(NamedTuple):
    """One value of one metric; its labels as they stand there."""

    name: str
    labels: str
    value: float


def samples(page: bytes, wanted: Collection[str], where: str = "metrics") -> list[Sample]:
    """The samples of the ``wanted`` metrics, in order; NaN where the server has no value.

    Raises InputError for a page that is no text, is too long, or has a wanted metric in a line of another form.

    >>> samples(b'# TYPE up gauge\\nup{job="a"} 1\\ndown 3\\n', {"up"})
    [Sample(name='up', labels='{job="a"}', value=1.0)]
    """
    if len(page) > MAX_BYTES:
        raise InputError(f"is over {MAX_BYTES:,} bytes", where=where)
    try:
        lines = page.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError("is no text in UTF-8", where=where) from error
    found = []
    for number, line in enumerate(lines, 1):
        text = line.strip(" \t\r")
        end = _NAME_END.search(text)
        if end and text[: end.start()] in wanted:
            found.append(_sample(text, f"{where}: line {number}"))
    return found


def _sample(text: str, where: str) -> Sample:
    match = _SAMPLE.fullmatch(text)
    if match is None:
        raise InputError(f"{text[:80]!r} is no sample in Prometheus' text format", where=where)
    name, labels, number = match.groups()
    return Sample(name, labels or "", float(number))
