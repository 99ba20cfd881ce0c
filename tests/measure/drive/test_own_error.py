"""What a sender tells of its own error."""

from __future__ import annotations

import socket
import time
from time import monotonic

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measure.drive.flood import Flood
from tests.measure.drive.plain_server import END, HEAD, event, read_request, served

from servewise.measure.addressing import target_of
from servewise.measure.drive import own_error
from servewise.measure.drive.drive import drive
from servewise.measure.drive.own_error import Sample
from servewise.measure.exchange import Exchange
from servewise.measure.sending import Sending


@given(st.lists(st.integers(0, 40_000), max_size=12))
@settings(max_examples=25, deadline=None)
def test_a_sample_is_every_nth_value_and_bounded(sizes: list[int]) -> None:
    """Whatever the pieces, a sample holds the first value and then every nth, never more than its bound."""
    sample, at = Sample(), 0
    for size in sizes:
        sample.extend([float(each) for each in range(at, at + size)])
        at += size
    values = list(sample.values)
    assert sample.seen == at
    assert len(values) <= own_error.MOST_SAMPLES
    if values:
        step = int(values[1] - values[0]) if len(values) > 1 else 1
        assert values == [float(each) for each in range(0, at, step)]


def _run(joined: bool) -> tuple[Exchange, Sending]:
    def answer(peer: socket.socket) -> None:
        read_request(peer)
        parts = [HEAD + event("a"), event("b"), event("c", '"stop"') + END]
        for part in [b"".join(parts)] if joined else parts:
            time.sleep(0.1)
            peer.sendall(part)
        peer.recv(1)

    got: list[Exchange] = []
    with served(answer) as url:
        sending = drive(Flood([0], 1), target_of(url, model="m"), start_s=monotonic(), on_end=got.append)
    return got[0], sending


def test_merged_events_are_counted_with_their_bound() -> None:
    """Events that came in one read are told, with the time since the read before; events apart are not."""
    exchange, sending = _run(joined=True)
    assert sending.merged == 2
    assert len({each.time_s for each in exchange.arrivals}) == 1
    assert all(0.09 < each <= exchange.first_token_s - exchange.sent_s + 1e-9 for each in sending.merged_s)
    exchange, sending = _run(joined=False)
    assert sending.merged == 0
    assert len({each.time_s for each in exchange.arrivals}) == 3


def test_sending_accounts_for_the_run() -> None:
    """Lateness of each ask, processor time within the run's length, and the most that was open."""
    _, sending = _run(joined=False)
    assert len(sending.lateness_s) == 1
    assert sending.lateness_s[0] >= 0
    assert 0 < sending.cpu_s < sending.wall_s
    assert (sending.most_open, sending.workers) == (1, 1)
