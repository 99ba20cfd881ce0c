"""The kernel's times against a server's own log."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from time import monotonic

import pytest
from tests.measure.drive.flood import Flood
from tests.measure.drive.plain_server import END, HEAD, event, read_request, served

from servewise.measure.addressing import target_of
from servewise.measure.drive.drive import drive
from servewise.measure.exchange import Exchange
from servewise.measure.wire import stamping
from servewise.measure.wire.connection import Connection
from servewise.measure.wire.run_clock import RunClock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's stamps are Linux's")
ROOM_S = 0.05  # how long a loaded machine may hold a thread between its clock and its write
LATE_S = 0.2


def _pair() -> tuple[Connection, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection((socket.AF_INET, listener.getsockname()))
        peer, _ = listener.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _until_stamped(connection, peer)
    return connection, peer


def _until_stamped(connection: Connection, peer: socket.socket) -> None:
    """The kernel begins to stamp a moment after the first socket on the machine asks for it."""
    for _ in range(100):
        peer.sendall(b"w")
        time.sleep(0.01)
        _, ancillary = connection.receive()
        if stamping.stamp_ns(ancillary) is not None:
            return


@pytest.fixture(autouse=True, scope="module")
def stamping_kernel() -> Iterator[None]:
    """While one socket asks for stamps the kernel gives them to all; it stops a moment after the last one closed."""
    connection, peer = _pair()
    yield
    peer.close()
    connection.close()


def test_data_that_is_read_late_has_its_true_time() -> None:
    """What lay unread for 200 ms carries the time at which it came."""
    clock = RunClock(monotonic())
    connection, peer = _pair()
    with peer:
        peer.sendall(b"early")
        written_s = clock.now()
        time.sleep(LATE_S)
        data, ancillary = connection.receive()
        stamp = stamping.stamp_ns(ancillary)
    connection.close()
    assert (data, stamp is not None) == (b"early", True)
    assert stamp is not None
    assert abs((stamp - clock.zero_ns) * 1e-9 - written_s) < ROOM_S


def test_merged_segments_have_the_last_ones_time() -> None:
    """Of segments that queued unread, the last byte's time is true, and no earlier byte is given a later one."""
    clock = RunClock(monotonic())
    connection, peer = _pair()
    written_s = []
    with peer:
        for _ in range(3):
            peer.sendall(b"x" * 100)
            written_s.append(clock.now())
            time.sleep(0.06)
        stamps = []
        for _ in range(3):  # a smaller read brings no earlier stamp back where the kernel has merged them
            data, ancillary, _, _ = connection.sock.recvmsg(100, stamping.ANCILLARY_BYTES)
            stamp = stamping.stamp_ns(ancillary)
            assert (len(data), stamp is not None) == (100, True)
            assert stamp is not None
            stamps.append((stamp - clock.zero_ns) * 1e-9)
    connection.close()
    assert abs(stamps[-1] - written_s[-1]) < ROOM_S
    assert stamps == sorted(stamps)
    assert all(stamp > written - ROOM_S for stamp, written in zip(stamps, written_s, strict=True))


def test_a_request_left_when_the_kernel_says() -> None:
    """A departure lies between the clock before and after the send, and the error queue is empty afterwards."""
    clock = RunClock(monotonic())
    connection, peer = _pair()
    before_s = clock.now()
    connection.offer(b"hello")
    assert connection.flush()
    after_s = clock.now()
    left_ns = connection.departed_ns()
    assert left_ns is not None
    assert before_s - 1e-4 <= (left_ns - clock.zero_ns) * 1e-9 <= after_s + 1e-4
    assert connection.departed_ns() is None
    peer.close()
    connection.close()


def test_a_busy_client_does_not_move_the_times() -> None:
    """While the client is held up for 200 ms an event comes: its time is the server's, and the lag is told."""
    start_s = monotonic()
    written_s: list[float] = []
    held = threading.Event()

    def slow(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(HEAD + event("a"))
        held.wait(5)
        time.sleep(0.05)
        written_s.append(monotonic() - start_s)
        peer.sendall(event("b", '"stop"') + END)
        peer.recv(1)

    def quick(peer: socket.socket) -> None:
        read_request(peer)
        time.sleep(0.1)
        peer.sendall(HEAD + event("a", '"stop"') + END)
        peer.recv(1)

    got: list[Exchange] = []

    def hold_up(exchange: Exchange) -> None:
        got.append(exchange)
        if len(got) == 1:
            held.set()
            time.sleep(0.05 + LATE_S)

    with served(slow, quick) as url:
        sending = drive(Flood(range(2), 2), target_of(url, model="m"), start_s=start_s, on_end=hold_up)
    slow_one = got[1]
    assert slow_one.stamped == "kernel"
    assert abs(slow_one.arrivals[-1].time_s - written_s[0]) < ROOM_S
    assert max(sending.read_lag_s) > LATE_S / 2
    assert max(sending.stalls_s) > LATE_S


def test_a_stepped_wall_clock_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the wall clock is set in mid-run, stamps of before and after map onto the same run time."""
    from servewise.measure.wire import run_clock

    clock = RunClock(monotonic())
    before = clock.zero_ns
    monkeypatch.setattr(run_clock, "time_ns", lambda: time.time_ns() + 5_000_000_000)
    while clock.follow() == before:
        continue
    assert clock.steps == 1
    assert abs(clock.zero_ns - before - 5_000_000_000) < 1_000_000
