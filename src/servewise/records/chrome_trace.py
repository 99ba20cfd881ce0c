"""A moment in the Trace Event Format, which chrome://tracing and ui.perfetto.dev open.

Source: "Trace Event Format" (Google, 2016): complete events (``ph`` X, with ``ts`` and ``dur`` in microseconds),
counters (C) and metadata (M) that name processes and threads. A server is a process: thread 0 holds its steps, and each
of the others one request at a time, the lowest that is free, so that the picture is as high as the server was full.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from servewise.records.spans import Moment, Span, StepSpan

US = 1e6
Event = dict[str, Any]


def chrome_trace(moment: Moment) -> dict[str, Any]:
    """The moment as a document; lossless but for times rounded to nanoseconds."""
    replicas = sorted({each.replica for each in moment.spans} | {each.replica for each in moment.steps})
    events = [event for replica in replicas for event in _server(moment, replica)]
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _server(moment: Moment, replica: int) -> Iterator[Event]:
    yield _named("process_name", replica, 0, f"server {replica}")
    yield _named("thread_name", replica, 0, "steps")
    for step in moment.steps:
        if step.replica == replica:
            yield from _step(step)
    yield from _requests([span for span in moment.spans if span.replica == replica], replica)


def _step(step: StepSpan) -> Iterator[Event]:
    prompt, decode = f"{step.prefill_tokens} prompt tokens", f"{step.decodes} decoding"
    name = " + ".join([prompt] * bool(step.prefill_tokens) + [decode] * bool(step.decodes))
    facts = {"decode_sequences": step.decodes, "prefill_tokens": step.prefill_tokens}
    yield _slice(name, "step", step.start_s, step.end_s, step.replica, 0, facts)
    at = {"ph": "C", "ts": _us(step.start_s), "pid": step.replica}
    yield at | {"name": "requests", "args": {"running": step.running, "waiting": step.waiting}}
    yield at | {"name": "KV tokens read", "args": {"tokens": step.kv_tokens}}


def _requests(spans: Sequence[Span], replica: int) -> Iterator[Event]:
    lanes = _lanes(spans)
    for lane in range(1, max(lanes.values(), default=0) + 1):
        yield _named("thread_name", replica, lane, f"request, lane {lane}")
    for span in sorted(spans, key=lambda each: each.start_s):
        facts = {"request": span.serial}
        name = f"{span.serial} {span.phase}"
        yield _slice(name, span.phase, span.start_s, span.end_s, replica, lanes[span.serial], facts)


def _lanes(spans: Sequence[Span]) -> dict[int, int]:
    """Request -> thread from 1 on: the lowest one free over all of the request's time."""
    whole: dict[int, list[float]] = defaultdict(list)
    for span in spans:
        whole[span.serial] += (span.start_s, span.end_s)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    found: dict[int, int] = {}
    for serial, times in sorted(whole.items(), key=lambda each: (min(each[1]), each[0])):
        while busy and busy[0][0] <= min(times):
            heappush(free, heappop(busy)[1])
        found[serial] = heappop(free) if free else len(busy) + 1
        heappush(busy, (max(times), found[serial]))
    return found


def _slice(name: str, category: str, start_s: float, end_s: float, process: int, thread: int, args: Event) -> Event:
    place = {"pid": process, "tid": thread, "ts": _us(start_s), "dur": _us(end_s - start_s)}
    return {"ph": "X", "name": name, "cat": category} | place | {"args": args}


def _named(what: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _us(seconds: float) -> float:
    return round(seconds * US, 3)
