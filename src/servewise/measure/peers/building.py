"""Request records out of another client's figures for one request: the same rules as for our own exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan

from servewise.errors import InputError
from servewise.measure.ask import Ask
from servewise.measure.exchange import Arrival, Exchange
from servewise.measure.outcome import Outcome
from servewise.measure.recording import Recorder
from servewise.records.columns import RequestColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRequest:
    """One request: times in seconds on the client's clock, ``events_s`` when output came; NaN: not known.

    ``first_tokens``: how many tokens the first event held, where the client knows no other times but the last.
    """

    serial: int
    sent_s: float
    end_s: float
    events_s: Sequence[float]
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None = None
    scheduled_s: float = nan
    first_tokens: int | None = None
    error: str = ""
    cancelled: bool = False


def columns_of(requests: Sequence[PeerRequest], where: str) -> RequestColumns:
    """The records of ``requests`` in order of ending, their times from the first request's on.

    InputError for an answered request without a time for its start, its end or one of its events.
    """
    for each in requests:
        if each.events_s and any(map(isnan, (each.sent_s, each.end_s, *each.events_s))):
            raise InputError("was answered, but lacks some of its times", where=f"{where}: request {each.serial}")
    zero = min((due for due in map(_due, requests) if not isnan(due)), default=0.0)
    recorder = Recorder()
    for request in sorted(requests, key=_ending):
        recorder.add(_exchange(request, zero))
    return recorder.columns


def _ending(request: PeerRequest) -> tuple[bool, float, int]:
    return isnan(request.end_s), 0.0 if isnan(request.end_s) else request.end_s, request.serial


def _due(request: PeerRequest) -> float:
    return request.sent_s if isnan(request.scheduled_s) else request.scheduled_s


def _exchange(request: PeerRequest, zero: float) -> Exchange:
    """A failed request without any time of its own stands at the run's start."""
    due = _due(request)
    return Exchange(
        ask=Ask(serial=request.serial, body=b"", output_tokens=request.output_tokens),
        outcome=_outcome(request),
        reason=request.error[:300],
        scheduled_s=0.0 if isnan(due) else due - zero,
        sent_s=request.sent_s - zero,
        end_s=request.end_s - zero,
        arrivals=tuple(_arrivals(request, zero)),
        prompt_tokens=request.prompt_tokens,
        cached_tokens=request.cached_tokens,
        output_tokens=request.output_tokens,
    )


def _arrivals(request: PeerRequest, zero: float) -> list[Arrival]:
    times = [each - zero for each in request.events_s]
    if request.first_tokens is None or len(times) < 2:
        return [Arrival(each) for each in times]
    rest = max(request.output_tokens - request.first_tokens, 0)
    return [Arrival(times[0], request.first_tokens), Arrival(times[-1], rest)]


def _outcome(request: PeerRequest) -> Outcome:
    if request.cancelled:
        return Outcome.CANCELLED
    if request.error:
        return Outcome.SERVER_ERROR
    return Outcome.COMPLETED if request.events_s else Outcome.EMPTY
