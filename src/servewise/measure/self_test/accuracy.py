"""What the client said less what the server truly did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isnan, nan
from typing import Literal

import numpy as np

from servewise.measure.exchange import Exchange
from servewise.measure.mock.log import MockLog, RequestLog
from servewise.measure.outcome import Outcome
from servewise.measure.sending import Sending


@dataclass(frozen=True, slots=True)
class Errors:
    """A sample of ``n`` errors [s]: ``mean`` is signed, the rest is of their sizes."""

    mean_s: float
    mean_size_s: float
    p50_size_s: float
    p99_size_s: float
    largest_s: float
    n: int

    @classmethod
    def of(cls, errors_s: Iterable[float]) -> Errors:
        """The sample's figures, NaN for an empty one."""
        signed = np.fromiter(errors_s, float)
        if not len(signed):
            return cls(nan, nan, nan, nan, nan, 0)
        sizes = np.abs(signed)
        p50, p99 = np.quantile(sizes, (0.5, 0.99))
        return cls(float(signed.mean()), float(sizes.mean()), float(p50), float(p99), float(sizes.max()), len(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The client's error at one load.

    The truth: a request is there when its last byte came (the kernel's stamp), a token has left when the server's
    ``send`` returned. ``ttft``: from sent to first token; ``tpot``: (last - first) / (N - tokens in the first event);
    ``arrival``: each token's time by itself. ``send_p99_s``: how long the server's ``send`` took, within which the
    token really left, so that errors below it may be the truth's own. ``server_late_p99_s``: by how much tokens left
    after they were due, which is no error, but tells whether the machine could do both. ``lateness_p99_s``: sent less
    scheduled.
    """

    streams: int
    workers: int
    requests: int
    failed: int
    tokens: int
    wall_s: float
    tokens_per_s: float
    ttft: Errors
    tpot: Errors
    arrival: Errors
    cpu_s_per_token: float
    server_cpu_s_per_token: float
    send_p99_s: float
    server_late_p99_s: float
    lateness_p99_s: float
    stamped: Literal["kernel", "user", "mixed"]

    def to_json(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def accuracy_of(
    exchanges: Sequence[Exchange],
    log: MockLog,
    sending: Sending,
    *,
    streams: int,
    start_s: float,
    server_cpu_s: float,
) -> Accuracy:
    """The client's error over the requests that completed; each was marked with its serial number.

    ``start_s``: the run's start on the monotonic clock, ``server_cpu_s`` what the server used in the run.
    """
    truths = log.by_user()
    pairs = [(each, truths[str(each.ask.serial)]) for each in exchanges if each.outcome is Outcome.COMPLETED]
    tokens = sum(sum(true.told) for _, true in pairs)
    sent = max(log.tokens_sent, 1)
    calls = [left - called for true in log for left, called in zip(true.sent_s, true.before_s, strict=True)]
    late = [left - due for true in log for left, due in zip(true.sent_s, true.due_s, strict=True)]
    return Accuracy(
        streams=streams,
        workers=sending.workers,
        requests=len(exchanges),
        failed=len(exchanges) - len(pairs),
        tokens=tokens,
        wall_s=sending.wall_s,
        tokens_per_s=tokens / sending.wall_s if sending.wall_s > 0 else nan,
        ttft=Errors.of(said.first_token_s - said.sent_s - true.ttft_s for said, true in pairs),
        tpot=Errors.of(_tpot_errors(pairs)),
        arrival=Errors.of(error for said, true in pairs for error in _arrival_errors(said, true, start_s)),
        cpu_s_per_token=sending.cpu_s / sent,
        server_cpu_s_per_token=server_cpu_s / sent,
        send_p99_s=_p99(calls),
        server_late_p99_s=_p99(late),
        lateness_p99_s=_p99(sending.lateness_s),
        stamped=_stamped(exchanges),
    )


def _tpot_errors(pairs: Sequence[tuple[Exchange, RequestLog]]) -> Iterator[float]:
    for said, true in pairs:
        after_first = sum(true.told) - true.told[0]
        if after_first:
            yield (said.arrivals[-1].time_s - said.arrivals[0].time_s) / after_first - true.tpot_s


def _arrival_errors(said: Exchange, true: RequestLog, start_s: float) -> Iterator[float]:
    for arrival, sent_s in zip(said.arrivals, true.sent_s, strict=False):
        yield start_s + arrival.time_s - sent_s


def _p99(values: Sequence[float]) -> float:
    known = [each for each in values if not isnan(each)]
    return float(np.quantile(known, 0.99)) if known else nan


def _stamped(exchanges: Sequence[Exchange]) -> Literal["kernel", "user", "mixed"]:
    kinds = {each.stamped for each in exchanges if each.arrivals}
    return kinds.pop() if len(kinds) == 1 else "mixed"
