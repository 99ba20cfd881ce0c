"""Faults that a server's plan cannot have: of the handshake, of the request's own way, of connections that wait."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest
from tests.measure.drive.flood import Flood
from tests.measure.drive.plain_server import HEAD, Handler, chunk, event, read_request, served
from tests.measure.drive.test_faults import ASK, WHOLE, Timed

from servewise.errors import RunFailed
from servewise.measure.addressing import target_of
from servewise.measure.drive.drive import drive
from servewise.measure.drive.get import get
from servewise.measure.drive.lane import Phase
from servewise.measure.drive.lanes import Lanes
from servewise.measure.drive.one import send_one
from servewise.measure.drive.sender import MOST_UNPARSED, Sender
from servewise.measure.drive.trip import Trip
from servewise.measure.exchange import Exchange
from servewise.measure.mock.certificate import can_make_certificates, make_certificate
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due
from servewise.measure.target import Timeouts

TOO_LARGE = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"
LARGE = b'"' + b"x" * 20_000_000 + b'"'
DEADLINE_S = 15.0  # far over any timeout here, far under hanging


def _refuse_at_once(peer: socket.socket) -> None:
    """Answers before it has read all, and closes: the kernel resets the connection, as much was not read."""
    peer.recv(1000)
    peer.sendall(TOO_LARGE)


def _refuse_and_hold(peer: socket.socket) -> None:
    """Answers before it has read all, reads no more, and does not close."""
    peer.recv(1000)
    peer.sendall(TOO_LARGE)
    time.sleep(1.0)


@pytest.mark.parametrize("handler", [_refuse_at_once, _refuse_and_hold])
def test_a_refusal_before_the_request_was_read(handler: Handler) -> None:
    """What a proxy says of a body that is too large is heard, though the request never left whole."""
    with served(handler) as url:
        got = send_one(replace(ASK, body=LARGE), target_of(url, model="m", timeouts=Timeouts(connect_s=5.0)))
    assert (got.outcome, got.http_status) == (Outcome.CLIENT_ERROR, 413)
    assert "big" in got.reason


def test_a_request_that_is_not_taken_is_timed_out() -> None:
    """A server that reads nothing is not waited for beyond the time to connect and send."""

    def deaf(peer: socket.socket) -> None:
        time.sleep(1.0)

    with served(deaf) as url:
        began_s = monotonic()
        got = send_one(replace(ASK, body=LARGE), target_of(url, model="m", timeouts=Timeouts(connect_s=0.3)))
    assert got.outcome is Outcome.TIMED_OUT
    assert "not taken" in got.reason
    assert monotonic() - began_s < DEADLINE_S


def test_a_connection_that_is_never_taken_is_timed_out() -> None:
    """A listener whose queue is full lets connections hang: each ends at its own time, by name."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        address = listener.getsockname()
        for _ in range(4):  # the queue holds one more than its length says
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        got: list[Exchange] = []
        target = target_of(f"http://127.0.0.1:{address[1]}", model="m", timeouts=Timeouts(connect_s=0.3))
        began_s = monotonic()
        drive(Flood(range(3), 3), target, start_s=began_s, on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.TIMED_OUT] * 3
    assert {"no connection" in each.reason for each in got} == {True}
    assert monotonic() - began_s < DEADLINE_S


def _mute(peer: socket.socket) -> None:
    peer.recv(1000)
    peer.recv(1)


def _hang_up(peer: socket.socket) -> None:
    peer.recv(1000)


@pytest.mark.parametrize(("handler", "outcome"), [(_mute, Outcome.TIMED_OUT), (_hang_up, Outcome.TLS)])
def test_a_handshake_that_does_not_end(handler: Handler, outcome: Outcome) -> None:
    """A TLS handshake that stalls is timed out, one that the server ends is a TLS failure."""
    with served(handler) as url:
        target = target_of(url.replace("http", "https"), model="m", timeouts=Timeouts(connect_s=0.3))
        got = send_one(ASK, target)
    assert got.outcome is outcome
    assert got.reason


def test_all_was_said_and_the_last_chunk_never_came() -> None:
    """[DONE] is the answer's end, as for a connection that is closed or reset after it; no time is added to it."""

    def stall(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(HEAD + event("Hel") + event("lo", '"stop"') + chunk(b"data: [DONE]\n\n"))
        peer.recv(1)

    with served(stall) as url:
        got = send_one(ASK, target_of(url, model="m", timeouts=Timeouts(idle_s=0.3)))
    assert (got.outcome, got.reason, got.text) == (Outcome.COMPLETED, "", "Hello")
    assert got.end_s < 0.3


def test_words_on_a_waiting_connection_answer_no_request() -> None:
    """A server that says 408 on an idle connection, as proxies do, and closes: the next request gets its own answer."""
    answered: list[float] = []

    def weary(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(WHOLE)
        answered.append(monotonic())
        time.sleep(0.05)
        peer.sendall(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def good(peer: socket.socket) -> None:
        while read_request(peer):
            peer.sendall(WHOLE)

    got: list[Exchange] = []
    with served(weary, good) as url:
        drive(Timed([0.0, 0.6]), target_of(url, model="m"), start_s=monotonic(), on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.COMPLETED] * 2


@pytest.mark.skipif(not can_make_certificates(), reason="nothing here makes a certificate")
def test_a_secured_connection_opened_ahead_is_kept(tmp_path: Path) -> None:
    """TLS 1.3 servers send tickets on a connection that waits: it is not lost, and none is opened in its stead."""
    make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    opened: list[float] = []

    def secured(peer: socket.socket) -> None:
        with context.wrap_socket(peer, server_side=True) as session:
            opened.append(monotonic())
            read_request(session)
            session.sendall(WHOLE)
            session.recv(1)

    got: list[Exchange] = []
    with served(secured) as url:
        target = target_of(url.replace("http", "https"), model="m", verify_tls=False)
        drive(Timed([1.0]), target, start_s=monotonic(), on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.COMPLETED]
    assert len(opened) == 1


def test_a_flood_is_read_no_faster_than_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where parsing does not keep up, here as it never begins, the rest waits with the kernel: memory is bounded."""
    piece = chunk(b": nothing\n\n" * 3000)
    waited: list[int] = []

    def flood(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(HEAD)
        while True:
            peer.sendall(piece)

    def parse_nothing(sender: Sender, until_s: float) -> None:
        waited.extend(len(trip.reads) for trip in sender.under_way)

    monkeypatch.setattr(Sender, "_parse_until", parse_nothing)
    got: list[Exchange] = []
    with served(flood) as url:
        target = target_of(url, model="m", timeouts=Timeouts(total_s=1.0))
        drive(Flood(range(2), 2), target, start_s=monotonic(), on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.TIMED_OUT] * 2
    assert max(waited) == MOST_UNPARSED + 1


def test_a_connection_that_was_spoken_on_meanwhile_is_not_taken() -> None:
    """Between two looks at the sockets a server may close a connection that waits, or say something on it."""

    def weary(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        peer.recv(1)

    with served(weary) as url:
        lanes = Lanes(target_of(url, model="m"))
        lane = lanes.open(None)
        lanes.poller.wait(5.0)
        lanes.await_bytes(lane, Phase.READING)
        lanes.keep(lane)
        lanes.poller.wait(5.0)
        trip = Trip(Due(ASK, 0.0), 0.0, keep_text=False, keep_logprobs=False)
        assert lanes.take(trip) is None
        assert not lanes.by_fd
        lanes.close()


def _dripping_head(peer: socket.socket) -> None:
    peer.recv(65536)
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100:
        peer.sendall(bytes([byte]))
        time.sleep(0.02)


def _silent(peer: socket.socket) -> None:
    peer.recv(65536)
    peer.recv(1)


@pytest.mark.parametrize("handler", [_dripping_head, _silent])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_document_is_not_waited_for_beyond_its_time(handler: Handler, scheme: str) -> None:
    """A head that drips or never comes, or a handshake, ends at the one time for all of it."""
    began_s = monotonic()
    with served(handler) as url, pytest.raises(RunFailed):
        get(target_of(url.replace("http", scheme), model="m"), "/metrics", timeout_s=0.4)
    assert monotonic() - began_s < DEADLINE_S
