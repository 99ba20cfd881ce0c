"""Servers that break, stall, refuse and hang up: one outcome each, and the run goes on."""

from __future__ import annotations

import gc
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isnan
from time import monotonic

import pytest
from tests.measure.drive.flood import Flood
from tests.measure.drive.plain_server import END, HEAD, Handler, event, read_request, served

from servewise.measure.addressing import target_of
from servewise.measure.ask import Ask
from servewise.measure.dialect.answer import Answer
from servewise.measure.drive.drive import drive
from servewise.measure.drive.one import send_one
from servewise.measure.drive.terms import Terms
from servewise.measure.exchange import Exchange
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import running_mock
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due
from servewise.measure.sending import Sending
from servewise.measure.target import Timeouts

ASK = Ask(serial=0, body=b"{}", output_tokens=2)
WHOLE = HEAD + event("Hel") + event("lo", '"stop"') + END


def _good(peer: socket.socket) -> None:
    while read_request(peer):
        peer.sendall(WHOLE)


def _sent(
    handlers: tuple[Handler, ...], requests: int, streams: int = 1, *, timeouts: Timeouts | None = None
) -> tuple[list[Exchange], Sending]:
    got: list[Exchange] = []
    with served(*handlers) as url:
        target = target_of(url, model="m", timeouts=timeouts)
        sending = drive(Flood(range(requests), streams), target, start_s=monotonic(), on_end=got.append)
    return got, sending


def test_one_connection_serves_many_requests() -> None:
    """A connection is used again: only the first request opens one."""

    def only(peer: socket.socket) -> None:
        raise AssertionError("a second connection")

    got, sending = _sent((_good, only), 5)
    assert [each.outcome for each in got] == [Outcome.COMPLETED] * 5
    assert [each.fresh_connection for each in got] == [True, False, False, False, False]
    assert sending.notes == ()


def test_a_kept_alive_connection_that_was_dropped_is_replaced_once() -> None:
    """A server that answers and then drops the connection at the next request, without a byte: sent again, and told."""

    def drop_at_second(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(WHOLE)
        read_request(peer)

    got, sending = _sent((drop_at_second, _good), 2)
    assert [(each.outcome, each.fresh_connection) for each in got] == [(Outcome.COMPLETED, True)] * 2
    assert "sent again" in "".join(sending.notes)


def test_a_connection_closed_between_requests_is_not_used_again() -> None:
    """A server that closes after its answer although it promised to keep the connection."""

    def close_after(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(WHOLE)

    got, _ = _sent((close_after,), 4)
    assert [each.outcome for each in got] == [Outcome.COMPLETED] * 4


def _drop(peer: socket.socket) -> None:
    read_request(peer)


def _reset(peer: socket.socket) -> None:
    read_request(peer)
    peer.sendall(HEAD + event("Hel"))
    time.sleep(0.05)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _cut(peer: socket.socket) -> None:
    read_request(peer)
    peer.sendall(HEAD + event("Hel"))


def _busy(peer: socket.socket) -> None:
    read_request(peer)
    peer.sendall(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n")
    peer.recv(1)


def _other(peer: socket.socket) -> None:
    peer.recv(10)
    peer.sendall(b"220 mail.example.com ESMTP\r\n")
    peer.recv(100_000)


@pytest.mark.parametrize(
    ("handler", "outcome", "arrivals"),
    [
        (_drop, Outcome.RESET, 0),
        (_reset, Outcome.RESET, 1),
        (_cut, Outcome.TRUNCATED, 1),
        (_busy, Outcome.RATE_LIMITED, 0),
        (_other, Outcome.PROTOCOL, 0),
    ],
)
def test_each_break_has_its_outcome(handler: Handler, outcome: Outcome, arrivals: int) -> None:
    """A fresh connection that breaks is not tried again; what came before is kept, with a reason."""
    got, _ = _sent((handler,), 1)
    assert (got[0].outcome, len(got[0].arrivals)) == (outcome, arrivals)
    assert got[0].reason
    assert not isnan(got[0].sent_s)
    assert got[0].retry_after_s == (2.0 if outcome is Outcome.RATE_LIMITED else None)


def _mute(peer: socket.socket) -> None:
    read_request(peer)
    peer.recv(1)


def _stuck(peer: socket.socket) -> None:
    read_request(peer)
    peer.sendall(HEAD + event("Hel"))
    peer.recv(1)


def _endless(peer: socket.socket) -> None:
    read_request(peer)
    peer.sendall(HEAD)
    while True:
        peer.sendall(event("x"))
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("handler", "timeouts", "words"),
    [
        (_mute, Timeouts(first_byte_s=0.2), "no byte"),
        (_stuck, Timeouts(idle_s=0.2), "inside the answer"),
        (_endless, Timeouts(total_s=0.4), "in all"),
    ],
)
def test_each_wait_has_its_end(handler: Handler, timeouts: Timeouts, words: str) -> None:
    """A server that never begins, stops or never ends is timed out, and the reason says which wait it was."""
    began_s = monotonic()
    got, _ = _sent((handler,), 1, timeouts=timeouts)
    assert got[0].outcome is Outcome.TIMED_OUT
    assert words in got[0].reason
    assert monotonic() - began_s < 10


def test_a_large_request_leaves_in_parts() -> None:
    """A body beyond the socket's buffer is sent whole, and counts as sent when its last byte has left."""
    seen: list[int] = []
    read_s: list[float] = []

    def slow(peer: socket.socket) -> None:
        time.sleep(0.2)
        seen.append(len(read_request(peer)))
        read_s.append(monotonic())
        peer.sendall(WHOLE)

    body = b'"' + b"x" * 8_000_000 + b'"'
    with served(slow) as url:
        start_s = monotonic()
        got = send_one(replace(ASK, body=body), target_of(url, model="m"))
    assert got.outcome is Outcome.COMPLETED
    assert seen[0] > len(body)
    assert 0.15 < got.sent_s < read_s[0] - start_s + 0.05


def test_no_such_host() -> None:
    """A host that does not exist refuses every request, by name."""
    got = send_one(ASK, target_of("http://no-such-host.invalid:1", model="m"))
    assert got.outcome is Outcome.REFUSED
    assert "no-such-host.invalid" in got.reason


def test_what_is_under_way_at_the_end_is_cancelled() -> None:
    """After until_s nothing is sent; what goes on beyond drain_s is cancelled, with what it had."""
    got: list[Exchange] = []
    with served(_endless) as url:
        drive(
            Flood(range(9), 3),
            target_of(url, model="m"),
            start_s=monotonic(),
            on_end=got.append,
            terms=Terms(until_s=0.3, drain_s=0.1),
        )
    assert [each.outcome for each in got] == [Outcome.CANCELLED] * 3
    assert all(each.arrivals for each in got)


def test_what_is_under_way_at_the_end_may_go_on_for_a_while() -> None:
    """Within drain_s an answer still completes."""

    def slow(peer: socket.socket) -> None:
        read_request(peer)
        time.sleep(0.4)
        peer.sendall(WHOLE)

    got: list[Exchange] = []
    with served(slow) as url:
        drive(
            Flood(range(9), 1),
            target_of(url, model="m"),
            start_s=monotonic(),
            on_end=got.append,
            terms=Terms(until_s=0.2, drain_s=9),
        )
    assert [each.outcome for each in got] == [Outcome.COMPLETED]


def test_stop_and_interrupt() -> None:
    """``stop`` ends a run as until_s does; an interrupt cancels all that is under way and goes on."""
    got: list[Exchange] = []
    began_s = monotonic()

    def interrupted() -> bool:
        if monotonic() - began_s > 0.2:
            raise KeyboardInterrupt
        return False

    with served(_endless) as url:
        target = target_of(url, model="m")
        stop: Callable[[], bool] = lambda: monotonic() - began_s > 0.2  # noqa: E731
        drive(Flood(range(2), 2), target, start_s=monotonic(), on_end=got.append, stop=stop, terms=Terms(drain_s=0))
        began_s = monotonic()
        with pytest.raises(KeyboardInterrupt):
            drive(Flood(range(2), 2), target, start_s=monotonic(), on_end=got.append, stop=interrupted)
    assert [each.outcome for each in got] == [Outcome.CANCELLED] * 4


def test_an_interrupt_is_heard_while_the_run_drains() -> None:
    """After the last request was sent too, an interrupt does not wait until what is under way has ended."""
    got: list[Exchange] = []
    began_s = monotonic()

    def interrupted() -> bool:
        if monotonic() - began_s > 0.4:
            raise KeyboardInterrupt
        return False

    with served(_endless) as url, pytest.raises(KeyboardInterrupt):
        drive(
            Flood(range(2), 2),
            target_of(url, model="m"),
            start_s=began_s,
            on_end=got.append,
            stop=interrupted,
            terms=Terms(until_s=0.2, drain_s=60),
        )
    assert monotonic() - began_s < 10
    assert [each.outcome for each in got] == [Outcome.CANCELLED] * 2


def test_tls_is_stamped_by_the_kernel_too() -> None:
    """Over TLS a request completes where the certificate is not asked for, with kernel times on Linux."""
    body = b'{"model":"mock","messages":[{"role":"user","content":"a"}],"stream":true,"max_tokens":3}'
    with running_mock(MockPlan(tls=True, first_s=(0.0, 0.0), gap_s=0.001)) as mock:
        got: list[Exchange] = []
        target = target_of(mock.url, model="mock", verify_tls=False)
        drive(Flood(range(3), 1, body), target, start_s=monotonic(), on_end=got.append)
        refused = send_one(replace(ASK, body=body), target_of(mock.url, model="mock"))
        plain = send_one(replace(ASK, body=body), target_of(mock.url.replace("https", "http"), model="mock"))
    assert [each.outcome for each in got] == [Outcome.COMPLETED] * 3
    assert [each.fresh_connection for each in got] == [True, False, False]
    assert {len(each.arrivals) for each in got} == {3}
    assert refused.outcome is Outcome.TLS
    assert "certificate" in refused.reason
    assert plain.outcome in (Outcome.RESET, Outcome.PROTOCOL)


def test_tls_to_a_plain_server() -> None:
    """A server that speaks no TLS is a TLS failure."""
    with served(_other) as url:
        got = send_one(ASK, target_of(url.replace("http", "https"), model="m"))
    assert got.outcome is Outcome.TLS


def test_nothing_is_left_for_the_collector() -> None:
    """With the collector off, answers are gone once they were handed over."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        _sent((_good,), 50, 4)
        assert not [each for each in gc.get_objects() if type(each) is Answer]
    finally:
        if was_on:
            gc.enable()


class Timed:
    """Asks at given times."""

    def __init__(self, times_s: Sequence[float], body: bytes = b"{}") -> None:
        self._left = [Due(replace(ASK, serial=i, body=body), time_s) for i, time_s in enumerate(times_s)]

    def next_due_s(self) -> float | None:
        """The next one's time."""
        return self._left[0].scheduled_s if self._left else None

    def take(self, now_s: float) -> Due | None:
        """The next one, once its time has come."""
        return self._left.pop(0) if self._left and self._left[0].scheduled_s <= now_s else None

    def ended(self, exchange: Exchange) -> None:
        """Nothing follows."""

    @property
    def finished(self) -> bool:
        """Whether all were taken."""
        return not self._left

    def split(self, workers: int) -> Sequence[Timed]:
        """Not needed here."""
        return [self]


def test_an_open_loop_finds_its_connection_open() -> None:
    """Before a due time a connection stands, replaced where it was dropped; no ask leaves before its time."""
    opened: list[float] = []

    def slow(peer: socket.socket) -> None:
        opened.append(monotonic())
        while read_request(peer):
            time.sleep(0.5)
            peer.sendall(WHOLE)

    got: list[Exchange] = []
    with served(_closing, slow) as url:
        start_s = monotonic()
        drive(Timed([1.0, 1.2, 1.25]), target_of(url, model="m"), start_s=start_s, on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.COMPLETED] * 3
    assert all(each.sent_s >= each.scheduled_s for each in got)
    assert [each.fresh_connection for each in got] == [True] * 3
    assert opened[0] - start_s < 1.0


def _closing(peer: socket.socket) -> None:
    """Closes before it is asked anything."""


def test_a_server_that_closes_unused_connections_is_not_flooded() -> None:
    """Connections opened ahead and lost unused are given up after three; the ask itself is still sent."""
    opened: list[float] = []

    def closing(peer: socket.socket) -> None:
        opened.append(monotonic())
        peer.settimeout(0.02)
        read_request(peer)
        peer.sendall(WHOLE)

    got: list[Exchange] = []
    with served(closing) as url:
        drive(Timed([1.0]), target_of(url, model="m"), start_s=monotonic(), on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.COMPLETED]
    assert len(opened) == 4


def test_an_open_loop_without_a_server_is_refused() -> None:
    """Asks that take over a connection still under way are refused like any other when nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    got: list[Exchange] = []
    target = target_of(f"http://127.0.0.1:{port}", model="m")
    drive(Timed([0.0005, 0.001, 0.05]), target, start_s=monotonic(), on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.REFUSED] * 3
