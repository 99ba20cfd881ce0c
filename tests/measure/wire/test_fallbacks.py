"""Systems without epoll and without kernel stamps."""

from __future__ import annotations

import select
import socket
from time import monotonic

import pytest
from tests.measure.drive.flood import Flood
from tests.measure.drive.plain_server import END, HEAD, event, read_request, served

from servewise.measure.addressing import target_of
from servewise.measure.drive.drive import drive
from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome
from servewise.measure.wire import stamping
from servewise.measure.wire.poller import READ, WRITE, Poller


def _answer(peer: socket.socket) -> None:
    while read_request(peer):
        peer.sendall(HEAD + event("a", '"stop"') + END)


def _run() -> list[Exchange]:
    got: list[Exchange] = []
    with served(_answer) as url:
        sending = drive(Flood(range(4), 2), target_of(url, model="m"), start_s=monotonic(), on_end=got.append)
    assert (sending.read_lag_s == ()) == all(each.stamped == "user" for each in got)
    return got


def test_without_kernel_stamps_the_program_stamps_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel gives no times the exchange is stamped by the program, in order and after the sending."""
    monkeypatch.setattr(stamping, "switch_on", lambda sock: False)
    got = _run()
    assert {(each.outcome, each.stamped) for each in got} == {(Outcome.COMPLETED, "user")}
    assert all(each.sent_s <= each.first_token_s <= each.end_s for each in got)


def test_without_epoll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no epoll all is sent and read all the same."""
    monkeypatch.delattr(select, "epoll")
    assert {each.outcome for each in _run()} == {Outcome.COMPLETED}


@pytest.mark.parametrize("with_epoll", [True, False])
def test_a_wait_ends_at_its_time_or_at_the_first_bytes(with_epoll: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of any length do not end early by more than a millisecond or two, and what is ready is told at once."""
    if not with_epoll:
        monkeypatch.delattr(select, "epoll")
    poller = Poller()
    left, right = socket.socketpair()
    with left, right:
        poller.register(left.fileno(), READ)
        for wanted_s in (0.0, 0.0005, 0.0017, 0.030):
            began_s = monotonic()
            while (remaining := began_s + wanted_s - monotonic()) > 0:  # as the loop waits: again until it is time
                assert poller.wait(remaining) == []
            assert monotonic() - began_s >= wanted_s
        right.send(b"x")
        assert poller.wait(5.0) == [(left.fileno(), READ)]
        poller.modify(left.fileno(), WRITE)
        assert poller.wait(5.0) == [(left.fileno(), WRITE)]
    poller.close()
