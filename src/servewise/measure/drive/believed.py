"""Counts of tokens that no answer can hold are damage, and are not used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from servewise.measure.exchange import Arrival

BEYOND, LEAST = 16, 10_000  # times what was asked for or came as events; and always so many


def believed(arrivals: Sequence[Arrival], told: int | None, asked: int) -> tuple[tuple[Arrival, ...], int | None]:
    """``arrivals`` and the server's count ``told`` of an answer of which ``asked`` tokens were wanted at most.

    A count that is far beyond both is left out, and so is what such events say of themselves: each token gets a time
    of its own in the record, and a billion of them would end this program, not the server's. Nor is 0 a count of output
    that came: proxies that do not count fill it in.
    """
    most = max(BEYOND * max(asked, len(arrivals)), LEAST)
    if sum(each.tokens or 0 for each in arrivals) > most:
        arrivals = [replace(each, tokens=None) for each in arrivals]
    damaged = told is not None and (told > most or (told == 0 and len(arrivals) > 0))
    return tuple(arrivals), None if damaged else told
