"""Said less true, on exchanges whose errors are known."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import pytest

from servewise.measure.ask import Ask
from servewise.measure.exchange import Arrival, Exchange
from servewise.measure.mock.log import MockLog, RequestLog
from servewise.measure.outcome import Outcome
from servewise.measure.self_test.accuracy import Accuracy, Errors, accuracy_of
from servewise.measure.sending import Sending

START_S = 1000.0


def pair(serial: int, *, ttft_off_s: float, gap_off_s: float) -> tuple[Exchange, RequestLog]:
    """A request of 11 tokens whose TTFT is said too long by one error, and each gap by another."""
    true = RequestLog(serial, START_S + 1.0, START_S + 1.0, "kernel", user=str(serial), tokens=11, ended="whole")
    for token in range(11):
        true.sent_s.append(START_S + 1.2 + 0.02 * token)
        true.before_s.append(true.sent_s[-1] - 1e-5)
        true.due_s.append(true.sent_s[-1] - 0.001)
        true.told.append(1)
    arrivals = tuple(Arrival(1.2 + ttft_off_s + (0.02 + gap_off_s) * token) for token in range(11))
    ask = Ask(serial=serial, body=b"", output_tokens=11)
    said = Exchange(
        ask=ask, outcome=Outcome.COMPLETED, scheduled_s=0.99, sent_s=1.0, arrivals=arrivals, stamped="kernel"
    )
    return said, true


def judged(pairs: list[tuple[Exchange, RequestLog]]) -> Accuracy:
    """The accuracy over such requests, of a client that used a second of processor in two."""
    sending = Sending(lateness_s=(0.01,) * len(pairs), cpu_s=1.0, wall_s=2.0)
    log = MockLog(tuple(true for _, true in pairs), 0.0)
    said = [said for said, _ in pairs]
    return accuracy_of(said, log, sending, streams=4, start_s=START_S, server_cpu_s=0.5)


def test_errors_are_found_again() -> None:
    """TTFT said 3 ms too long and each gap 0.1 ms too long are a TTFT error of 3 ms and a TPOT error of 0.1 ms."""
    found = judged([pair(serial, ttft_off_s=0.003, gap_off_s=0.0001) for serial in range(10)])
    assert found.ttft.mean_s == pytest.approx(0.003)
    assert found.tpot.mean_s == pytest.approx(0.0001)
    assert found.arrival.largest_s == pytest.approx(0.003 + 10 * 0.0001)
    assert (found.ttft.n, found.tpot.n, found.arrival.n) == (10, 10, 110)
    assert found.send_p99_s == pytest.approx(1e-5, rel=1e-3)
    assert found.server_late_p99_s == pytest.approx(0.001, rel=1e-3)
    assert found.tokens_per_s == 110 / 2
    assert found.cpu_s_per_token == pytest.approx(1 / 110)
    assert found.server_cpu_s_per_token == pytest.approx(0.5 / 110)


def test_errors_of_both_signs_do_not_cancel() -> None:
    """Half too early and half too late by 2 ms: the signed mean is 0, every size is 2 ms."""
    found = judged([pair(serial, ttft_off_s=0.002 * (-1) ** serial, gap_off_s=0.0) for serial in range(10)])
    assert found.ttft.mean_s == pytest.approx(0.0, abs=1e-9)
    assert (found.ttft.mean_size_s, found.ttft.p99_size_s) == pytest.approx((0.002, 0.002))


def test_failures_are_counted_and_have_no_error() -> None:
    """A request that failed is counted, and its times do not enter."""
    said, true = pair(0, ttft_off_s=5.0, gap_off_s=5.0)
    broken = Exchange(ask=said.ask, outcome=Outcome.RESET, scheduled_s=0.0, arrivals=said.arrivals)
    good = pair(1, ttft_off_s=0.0, gap_off_s=0.0)
    found = judged([(broken, true), good])
    assert (found.requests, found.failed, found.ttft.n) == (2, 1, 1)
    assert found.ttft.largest_s == pytest.approx(0.0, abs=1e-9)


def test_no_sample_has_no_figure() -> None:
    """Nothing measured is no zero error."""
    assert isnan(Errors.of([]).p99_size_s)


def test_mixed_stamps_are_told() -> None:
    """Where some arrivals have the kernel's stamp and some not, the accuracy says so."""
    said, true = pair(0, ttft_off_s=0.0, gap_off_s=0.0)
    other = replace(said, ask=Ask(serial=1, body=b"", output_tokens=11), stamped="user")
    assert judged([(said, true)]).stamped == "kernel"
    assert judged([(said, true), (other, pair(1, ttft_off_s=0.0, gap_off_s=0.0)[1])]).stamped == "mixed"
