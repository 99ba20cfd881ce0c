"""Runs made by hand, from servers whose behaviour is known exactly."""

from __future__ import annotations

from collections.abc import Iterable

from servewise.measure.bench.window import closed_window
from servewise.records.columns import COMPLETED, RequestColumns, TokenTimes


def run(rows: Iterable[tuple[float, float, float, int]], *, status: int = COMPLETED) -> RequestColumns:
    """Requests of (sent, first token, end, tokens), the tokens evenly from first to end, in order of their end."""
    found = RequestColumns(token_times=TokenTimes())
    for serial, (sent, first, end, tokens) in enumerate(sorted(rows, key=lambda row: row[2])):
        add(found, serial, sent, first, end, tokens, status)
    return found


def add(found: RequestColumns, serial: int, sent: float, first: float, end: float, tokens: int, status: int) -> None:
    """One more row."""
    found.id.append(serial)
    for column in (found.scheduled_s, found.sent_s, found.admitted_s):
        column.append(sent)
    found.first_token_s.append(first)
    found.end_s.append(end)
    found.prompt_tokens.append(100)
    found.cached_tokens.append(0)
    found.output_tokens.append(tokens)
    found.preemptions.append(0)
    found.status.append(status)
    assert found.token_times is not None
    gaps = max(tokens - 1, 1)
    found.token_times.append(first + (end - first) * each / gaps for each in range(tokens))


def deterministic(
    streams: int, rounds: int, *, ttft: float = 0.2, service: float = 1.0, tokens: int = 9
) -> RequestColumns:
    """A closed loop in which each request takes ``service`` exactly; stream s begins at s / streams of a service."""
    starts = [service * stream / streams + turn * service for stream in range(streams) for turn in range(rounds)]
    return run((start, start + ttft, start + service, tokens) for start in starts)


__all__ = ["add", "closed_window", "deterministic", "run"]
