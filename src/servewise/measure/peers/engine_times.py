"""Requests with the times that vLLM's engine keeps of each (``RequestStateStats``), one object or CSV row a request.

Format: ``requests.jsonl`` of LLMServingSim's benchmark (bench/core/recorder.py, MIT, read 2026-11): ``request_id``,
``input_toks``, ``output_toks``, ``arrival_time`` [epoch s], ``queued_ts``, ``scheduled_ts``, ``first_token_ts`` and
``last_token_ts`` [s on the engine's monotonic clock]; or as CSV with times from the first (``arrival_s``, ...).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.measure.peers.building import PeerRequest, columns_of
from servewise.measure.peers.fields import Row, number, whole
from servewise.measure.peers.found import PeerRun, conditions, lengths_words, load_words

CLIENT = "vLLM's engine"
LENGTHS = ("input_toks", "output_toks")
STAMPS = ("arrival_time", "queued_ts", "first_token_ts", "last_token_ts")
COLUMNS = ("arrival_s", "queued_s", "first_token_s", "last_token_s")
CLOCK = Caveat(
    "engine-clock",
    "times are the engine's own: nothing of the network, and arrivals are on another clock, set by the first request",
    "measure with servewise bench, which stamps at the client's socket",
)


def is_request(line: object) -> bool:
    """Whether a JSON value (or a row of a CSV file) is such a request."""
    return isinstance(line, Mapping) and any(
        all(name in line for name in (*LENGTHS, *names)) for names in (STAMPS, COLUMNS)
    )


def read(lines: Sequence[Row], where: str) -> tuple[PeerRun, ...]:
    """The run of those requests, numbered in order of arrival; all of it counts, its rate is words alone."""
    requests = [_request(line, f"{where}: request {place}") for place, line in enumerate(lines)]
    ordered = sorted(requests, key=lambda each: each[0])
    began = min((each[1] for each in requests), default=0.0) - min((each[0] for each in requests), default=0.0)
    found = [_numbered(serial, began, *each) for serial, each in enumerate(ordered)]
    rate = _rate_per_s([each.sent_s for each in found])
    means = (sum(each.prompt_tokens for each in found), sum(each.output_tokens for each in found))
    return (
        PeerRun(
            client=CLIENT,
            conditions=conditions(
                model=None,
                load=load_words(None, float(f"{rate:.3g}") if math.isfinite(rate) else None),
                lengths=lengths_words(*(each / len(found) for each in means)),
            ),
            requests=columns_of(found, where),
            itl_known=False,
            caveats=(CLOCK,),
        ),
    )


def _request(line: Row, where: str) -> tuple[float, float, float, float, int, int]:
    """Arrival on its clock; queue, first and last token on the engine's [s]; tokens in and out."""
    names = STAMPS if STAMPS[0] in line else COLUMNS
    arrival, queued, first, last = (number(line, name, where) for name in names)
    if not math.isfinite(arrival + queued):
        raise InputError("lacks its arrival", where=where)
    prompt, output = (whole(line, name, where) for name in LENGTHS)
    return arrival, queued, first, last, prompt, output


def _numbered(
    serial: int, began: float, arrival: float, queued: float, first: float, last: float, prompt: int, output: int
) -> PeerRequest:
    """The request in its turn; ``began`` lies between the two clocks, so that the first is queued as it arrives."""
    sent = min(arrival + began, queued)
    answered = math.isfinite(first + last)
    return PeerRequest(
        serial=serial,
        sent_s=sent,
        end_s=last,
        events_s=([first, last] if output > 1 else [first]) if answered else [],
        prompt_tokens=prompt,
        output_tokens=output,
        first_tokens=1,
        error="" if answered else "was never answered",
    )


def _rate_per_s(sent: Sequence[float]) -> float:
    span = max(sent, default=0.0) - min(sent, default=0.0)
    return (len(sent) - 1) / span if span > 0 else math.inf
