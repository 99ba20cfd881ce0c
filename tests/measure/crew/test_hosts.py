"""Several hosts send one schedule: processes on this machine stand for them, each with a clock of its own."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import pytest
from tests.measure.crew.node import Node
from tests.measure.drive.flood import Flood
from tests.measure.drive.plain_server import END, HEAD, event, read_request, served
from tests.measure.drive.test_faults import Timed

from servewise.measure.addressing import target_of
from servewise.measure.crew.crew import Crew
from servewise.measure.crew.here import Here
from servewise.measure.crew.remote import LinkLost, RemoteHost
from servewise.measure.crew.seat import Host
from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome

AHEAD_S = 1000.0  # no clock of this machine is wrong by that; a start that minded it would be 16 minutes late
TTFT_S = 0.05


@contextmanager
def crew_of(*hosts: tuple[str, int, float]) -> Iterator[tuple[Crew, list[Node]]]:
    """A crew over nodes of so many workers, each so far ahead."""
    nodes = [Node(*each) for each in hosts]
    with Crew([RemoteHost(node, workers) for node, (_, workers, _) in zip(nodes, hosts, strict=True)]) as crew:
        yield crew, nodes


def answer(peer: socket.socket) -> None:
    """After a while."""
    while read_request(peer):
        time.sleep(TTFT_S)
        peer.sendall(HEAD + event("Hel") + event("lo", '"stop"') + END)


def silent(peer: socket.socket) -> None:
    """Never."""
    read_request(peer)
    peer.recv(1)


def test_a_clock_that_is_ahead_is_found_and_moves_nothing() -> None:
    """Of two hosts one clock is set 1,000 s ahead: it is found within its bound, and both send at the same times."""
    got: list[Exchange] = []
    times_s = [0.1 * place for place in range(12)]
    with served(answer) as url, crew_of(("near", 1, 0.0), ("far", 1, AHEAD_S)) as (crew, _):
        start_s = monotonic() + crew.lead_s
        sent = crew.drive(Dealt(times_s), target_of(url, model="m"), start_s=start_s, on_end=got.append)
        took_s = monotonic() - start_s
    near, far = sent.hosts
    for share, truth_s in ((near, 0.0), (far, AHEAD_S)):
        assert abs(_known(share.offset_s) - truth_s) <= _known(share.offset_bound_s)
        assert abs(_known(share.drift_s)) <= _known(share.drift_bound_s)  # both are the kernel's one clock
    assert (near.requests, far.requests) == (6, 6)
    assert [each.outcome for each in got] == [Outcome.COMPLETED] * 12
    for each in got:
        assert each.scheduled_s <= each.sent_s < took_s
        assert TTFT_S <= each.first_token_s - each.sent_s < took_s


def _known(value: float | None) -> float:
    assert value is not None
    return value


def test_a_lost_host_is_counted_and_the_rest_goes_on() -> None:
    """A host that dies in mid-run: what it had under way is lost by name, the other sends its share, totals add up."""
    got: list[Exchange] = []
    with served(answer) as url, crew_of(("near", 2, 0.0), ("far", 2, 5.0)) as (crew, nodes):

        def lose_one() -> bool:
            if len(got) >= 8 and crew.under_way >= 4:
                nodes[1].kill()
            return False

        sent = crew.drive(
            Flood(range(80), 8), target_of(url, model="m"), start_s=monotonic(), on_end=got.append, stop=lose_one
        )
        assert crew.workers == 2
        again: list[Exchange] = []
        crew.drive(Flood(range(4), 2), target_of(url, model="m"), start_s=monotonic(), on_end=again.append)
    counts = Counter(each.outcome for each in got)
    assert len({each.ask.serial for each in got}) == len(got)
    assert set(counts) <= {Outcome.COMPLETED, Outcome.LOST}
    assert {each.ask.serial for each in got if each.outcome is Outcome.COMPLETED} >= {
        serial for serial in range(80) if serial % 4 in (0, 1)
    }
    assert all(each.reason.startswith("far: ") and each.ask.serial % 4 in (2, 3) for each in got if each.reason)
    near, far = sent.hosts
    assert (near.requests, near.completed, near.lost, near.end) == (40, 40, 0, "")
    assert far.requests == far.completed + far.lost == len(got) - 40
    assert 1 <= far.lost == counts[Outcome.LOST] <= 4
    assert far.end
    assert far.drift_s is None
    assert [each.outcome for each in again] == [Outcome.COMPLETED] * 4


def test_a_host_lost_between_runs_is_left_out_of_the_next() -> None:
    """The next schedule is shared out over those who are there: nothing is lost with a host that is gone already."""
    got: list[Exchange] = []
    with served(answer) as url, crew_of(("near", 1, 0.0), ("far", 1, 0.0)) as (crew, nodes):
        nodes[1].kill()
        nodes[1].process.wait(10)
        crew.drive(Flood(range(6), 2), target_of(url, model="m"), start_s=monotonic(), on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.COMPLETED] * 6


class Deaf(Node):
    """A node that lives, but whose clock is not heard any more once it is ``deaf``."""

    deaf = False

    def clock(self) -> float:
        if self.deaf:
            raise LinkLost("no word for 10 s")
        return super().clock()


def test_a_host_whose_clock_does_not_answer_is_left_out() -> None:
    """Without its clock nobody knows when it would begin: the run is the others'."""
    got: list[Exchange] = []
    hosts = [RemoteHost(near := Deaf("near", 1), 1), RemoteHost(Node("far", 1), 1)]
    with served(answer) as url, Crew(hosts) as crew:
        near.deaf = True
        sent = crew.drive(Flood(range(6), 2), target_of(url, model="m"), start_s=monotonic(), on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.COMPLETED] * 6
    assert [each.host for each in sent.hosts] == ["far"]


def test_hosts_and_this_machine_together_and_an_interrupt() -> None:
    """Workers here and elsewhere are one crew; an interrupt cancels what each has under way, and goes on."""
    got: list[Exchange] = []

    def interrupt() -> bool:
        if crew.under_way == 4:
            raise KeyboardInterrupt
        return False

    hosts: list[Host] = [Here(1), RemoteHost(Node("far", 1, -7.0), 1)]
    with served(silent) as url, Crew(hosts) as crew, pytest.raises(KeyboardInterrupt):
        crew.drive(
            Flood(range(4), 4), target_of(url, model="m"), start_s=monotonic(), on_end=got.append, stop=interrupt
        )
    assert [each.outcome for each in got] == [Outcome.CANCELLED] * 4


class Dealt(Timed):
    """Asks at given times, dealt out in turn."""

    def split(self, workers: int) -> list[Timed]:
        """Every nth to each."""
        shares = []
        for worker in range(workers):
            share = Timed([])
            share._left = self._left[worker::workers]
            shares.append(share)
        return shares
