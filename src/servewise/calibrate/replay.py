"""A measured run's own requests, sent to a simulated server as they were sent to the real one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servewise.batching.policies import Policy
from servewise.errors import InputError
from servewise.metrics.latency import floats, ints
from servewise.records.columns import COMPLETED, RequestColumns
from servewise.records.run_directory import RunRecord
from servewise.simulate.arrivals import Arrivals, ClosedArrivals, OpenArrivals
from servewise.simulate.run import Run, simulate
from servewise.steptime.estimator import Estimator
from servewise.workload.request import Request

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_REQUESTS = 400  # of one run: enough for percentiles, few enough to be simulated a hundred times
MOST_CACHED = 0.25  # of the prompts' tokens
FEWEST = 10
CLOSED_SHARE = 0.9  # of the sends that follow an end at full concurrency, in a closed loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The requests of one run in the order in which they were sent, and what came of them.

    ``load`` names the run. ``concurrency`` of a closed loop, whose users pause ``pause_s`` between answer and next
    request; None: the requests come at their times. ``judged`` are the places (from 0, in order of sending) of the
    requests that count; ``ttft_s`` (from the moment of sending), ``tpot_s`` (NaN below 2 tokens) and ``cycle_s`` (sent
    to end) are theirs, ``gaps_s`` the times between successive tokens (empty where they are not known).
    """

    load: str
    requests: tuple[Request, ...]
    concurrency: int | None
    pause_s: float
    judged: Ints
    ttft_s: Floats
    tpot_s: Floats
    cycle_s: Floats
    gaps_s: Floats

    def source(self) -> Arrivals:
        """The requests as they come."""
        if self.concurrency is None:
            return OpenArrivals(self.requests)
        return ClosedArrivals(self.requests, self.concurrency, self.pause_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """How a server runs requests, save for its clock: policy and KV pool."""

    policy: Policy
    blocks: int | None = None
    block_tokens: int = 16

    def run(self, replay: Replay, estimator: Estimator) -> Run:
        """The requests of ``replay`` at this server with that clock."""
        return simulate(replay.source(), self.policy, estimator, blocks=self.blocks, block_tokens=self.block_tokens)


def replay_of(record: RunRecord, load: str) -> Replay:
    """The replay of a measured (or simulated) run; InputError where too little of it is of use."""
    requests = record.requests
    sent, ended = floats(requests.sent_s), floats(requests.end_s)
    known = np.flatnonzero((ints(requests.status) == COMPLETED) & np.isfinite(sent) & np.isfinite(ended))
    rows = known[np.argsort(sent[known], kind="stable")][:MOST_REQUESTS]
    if len(rows) < FEWEST:
        hint = f"measure {FEWEST} or more"
        raise InputError(f"holds {len(rows)} completed requests, too few to calibrate on", where=load, hint=hint)
    prompts, cached = ints(requests.prompt_tokens)[rows], ints(requests.cached_tokens)[rows]
    if not prompts.all():
        raise InputError("has requests whose prompt tokens are not known", where=load, hint="ask the server for usage")
    if cached.sum() > MOST_CACHED * prompts.sum():
        what = f"found {cached.sum() / prompts.sum():.0%} of its prompts in the server's cache"
        raise InputError(what, where=load, hint="calibrate on runs with a cold cache")
    concurrency = _concurrency(record.details, sent[rows], ended[rows])
    judged = np.flatnonzero(_in_window(record.details, requests, rows, concurrency))
    if len(judged) < FEWEST:
        judged = np.arange(len(rows))
    times = rows[judged]
    outputs, first = ints(requests.output_tokens)[rows], floats(requests.first_token_s)
    after = np.where(outputs[judged] > 1, outputs[judged] - 1, np.nan)
    return Replay(
        load=load,
        requests=_asked(sent[rows] - sent[rows[0]], np.maximum(prompts - cached, 1), outputs),
        concurrency=concurrency,
        pause_s=0.0 if concurrency is None else _pause_s(sent[rows], ended[rows], concurrency),
        judged=judged,
        ttft_s=first[times] - sent[times],
        tpot_s=(ended[times] - first[times]) / after,
        cycle_s=ended[times] - sent[times],
        gaps_s=_gaps(requests, times),
    )


def _asked(sent_s: Floats, prompts: Ints, outputs: Ints) -> tuple[Request, ...]:
    rows = zip(sent_s.tolist(), prompts.tolist(), np.maximum(outputs, 1).tolist(), strict=True)
    return tuple(Request(place, at_s, prompt, output, ()) for place, (at_s, prompt, output) in enumerate(rows))


def _concurrency(details: Any, sent: Floats, ended: Floats) -> int | None:
    """Of a closed loop: as the run says, else as its sends show (each at an end, with all others under way)."""
    if "concurrency" in details or "rate_per_s" in details:
        told = details.get("concurrency")
        return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else None
    under_way = np.arange(1, len(sent) + 1) - np.searchsorted(np.sort(ended), sent, side="right")
    most = int(under_way.max())
    steady = under_way[most - 1 :]
    return most if 2 * len(steady) > len(sent) and (steady == most).mean() >= CLOSED_SHARE else None


def _pause_s(sent: Floats, ended: Floats, concurrency: int) -> float:
    """The usual time between a user's answer and its next request [s]."""
    later = np.sort(sent)[concurrency:]
    gaps = later - np.sort(ended)[: len(later)]
    return max(0.0, float(np.median(gaps))) if len(gaps) else 0.0


def _in_window(details: Any, requests: RequestColumns, rows: Ints, concurrency: int | None) -> NDArray[np.bool_]:
    """The requests in the steady window that the run names; without one all (of a closed loop those after the first
    of each user, and before the last).
    """
    window = details.get("window")
    if isinstance(window, dict) and all(isinstance(window.get(key), (int, float)) for key in ("start_s", "end_s")):
        column = requests.end_s if window.get("by") == "end" else requests.scheduled_s
        at = floats(column)[rows]
        return np.asarray((at >= window["start_s"]) & (at <= window["end_s"]))
    place = np.arange(len(rows))
    if concurrency is None:
        return np.ones(len(rows), bool)
    return np.asarray((place >= concurrency) & (place < len(rows) - concurrency))


def _gaps(requests: RequestColumns, rows: Ints) -> Floats:
    """Times between successive tokens of ``rows`` [s]; none where many tokens came in one event."""
    times = requests.token_times
    if times is None:
        return np.empty(0)
    offsets, all_times = ints(times.offsets), floats(times.times)
    each = [np.diff(all_times[offsets[row] : offsets[row + 1]]) for row in rows.tolist()]
    gaps = np.concatenate(each) if each else np.empty(0)
    joined = float((gaps <= 0).mean()) if len(gaps) else 1.0
    return gaps if joined < 0.02 else np.empty(0)
