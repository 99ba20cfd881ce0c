"""One load against the stand-in server, in a closed loop."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from servewise.measure.addressing import target_of
from servewise.measure.ask import Ask
from servewise.measure.crew.many import drive_many
from servewise.measure.drive.drive import drive
from servewise.measure.drive.terms import Terms
from servewise.measure.exchange import Exchange
from servewise.measure.load.fixed import one_by_one
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock
from servewise.measure.self_test.accuracy import Accuracy, accuracy_of
from servewise.measure.target import Timeouts

# What the field's other clients were measured against: 200-220 ms to the first token, then one each 20 ms.
PLAN = MockPlan(first_s=(0.200, 0.220), gap_s=0.020)
TOKENS = 64
PROMPT = "how long does each token of this answer take to come"
WORKERS_START_S = 2.0  # that many seconds for processes to start
DRAIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Trial:
    """``streams`` users in a closed loop who send ``rounds`` requests each, over by ``most_s`` [s] in any case."""

    streams: int
    rounds: int
    most_s: float
    workers: int = 1
    tokens: int = TOKENS


def run_trial(server: RunningMock, trial: Trial) -> Accuracy:
    """The client's error in a trial; the server's log is cleared first."""
    server.forget()
    before_s = server.log().cpu_s
    asks = [_ask(serial, server.plan.model, trial.tokens) for serial in range(trial.streams * trial.rounds)]
    target = target_of(server.url, model=server.plan.model, timeouts=Timeouts(idle_s=trial.most_s))
    schedule = one_by_one(asks, trial.streams)
    ended: list[Exchange] = []
    terms = Terms(until_s=trial.most_s, drain_s=DRAIN_S)
    start_s = time.monotonic() + (WORKERS_START_S if trial.workers > 1 else 0.0)
    if trial.workers > 1:
        sending = drive_many(
            schedule,
            target,
            workers=trial.workers,
            start_s=start_s,
            on_end=ended.append,
            terms=terms,
        )
    else:
        sending = drive(schedule, target, start_s=start_s, on_end=ended.append, terms=terms)
    log = server.log()
    server_cpu_s = log.cpu_s - before_s
    return accuracy_of(ended, log, sending, streams=trial.streams, start_s=start_s, server_cpu_s=server_cpu_s)


def _ask(serial: int, model: str, tokens: int) -> Ask:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "user": str(serial),
    }
    return Ask(serial=serial, body=json.dumps(body).encode(), output_tokens=tokens)
