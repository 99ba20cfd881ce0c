"""Several processes send one schedule."""

from __future__ import annotations

import socket
import time
from time import monotonic

import pytest
from tests.measure.drive.flood import Breaking, Flood
from tests.measure.drive.plain_server import END, HEAD, event, read_request, served

from servewise.errors import RunFailed
from servewise.measure.addressing import target_of
from servewise.measure.crew.crew import Crew
from servewise.measure.crew.here import Here
from servewise.measure.crew.many import drive_many
from servewise.measure.drive.terms import Terms
from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome


def _answer(peer: socket.socket) -> None:
    while read_request(peer):
        peer.sendall(HEAD + event("Hel") + event("lo", '"stop"') + END)


def _slow(peer: socket.socket) -> None:
    while read_request(peer):
        time.sleep(0.1)
        peer.sendall(HEAD + event("Hel") + event("lo", '"stop"') + END)


def _silent(peer: socket.socket) -> None:
    read_request(peer)
    peer.recv(1)


def test_two_processes_send_each_ask_once() -> None:
    """All asks of the schedule come back once, with text and arrivals as one process would give them."""
    got: list[Exchange] = []
    with served(_answer) as url:
        start_s = monotonic() + 1
        sent = drive_many(
            Flood(range(40), 4),
            target_of(url, model="m"),
            workers=2,
            start_s=start_s,
            on_end=got.append,
            terms=Terms(keep_text=True),
        )
    assert sorted(each.ask.serial for each in got) == list(range(40))
    assert {(each.outcome, each.text, len(each.arrivals)) for each in got} == {(Outcome.COMPLETED, "Hello", 2)}
    assert (sent.workers, len(sent.lateness_s)) == (2, 40)
    assert sent.most_open <= 4
    assert sent.cpu_s > 0


def test_a_dead_worker_takes_its_share_along_and_the_others_go_on() -> None:
    """What a killed worker had under way is lost, by name and counted once; the other sends its whole share."""
    got: list[Exchange] = []
    with served(_slow) as url, Crew([here := Here(2)]) as crew:
        worker = here.seats[0].process

        def kill_one() -> bool:
            if len(got) >= 4 and crew.under_way == 4:
                worker.kill()
            return False

        sent = crew.drive(
            Flood(range(40), 4), target_of(url, model="m"), start_s=monotonic(), on_end=got.append, stop=kill_one
        )
        again: list[Exchange] = []
        crew.drive(Flood(range(4), 2), target_of(url, model="m"), start_s=monotonic(), on_end=again.append)
    serials = [each.ask.serial for each in got]
    lost = [each for each in got if each.outcome is Outcome.LOST]
    assert len(serials) == len(set(serials))
    assert set(range(1, 40, 2)) <= {each.ask.serial for each in got if each.outcome is Outcome.COMPLETED}
    assert 1 <= len(lost) <= 2  # one may have ended before the signal came
    assert all("exit status -9" in each.reason and each.ask.serial % 2 == 0 for each in lost)
    (share,) = sent.hosts
    assert (share.requests, share.completed, share.lost) == (len(got), len(got) - len(lost), len(lost))
    assert "exit status -9" in share.end
    assert [each.outcome for each in again] == [Outcome.COMPLETED] * 4


def test_a_run_without_any_worker_fails() -> None:
    """Where all are killed the run fails with a line, and what they had under way was counted."""
    got: list[Exchange] = []
    with served(_silent) as url, Crew([here := Here(2)]) as crew:

        def kill_all() -> bool:
            if crew.under_way == 4:
                for seat in here.seats:
                    seat.process.kill()
            return False

        began_s = monotonic()
        with pytest.raises(RunFailed, match="died"):
            crew.drive(Flood(range(4), 4), target_of(url, model="m"), start_s=began_s, on_end=got.append, stop=kill_all)
        with pytest.raises(RunFailed, match="no worker process is left"):
            crew.drive(Flood(range(4), 4), target_of(url, model="m"), start_s=began_s, on_end=got.append)
    assert [each.outcome for each in got] == [Outcome.LOST] * 4


def test_a_fault_of_the_schedule_is_told() -> None:
    """A schedule that raises in a worker fails the run with its reason, and the others' results are kept."""
    got: list[Exchange] = []
    with served(_answer) as url, pytest.raises(RunFailed, match="no more"):
        drive_many(Breaking(range(4), 2), target_of(url, model="m"), workers=2, start_s=monotonic(), on_end=got.append)
    assert all(each.outcome is Outcome.COMPLETED for each in got)


def test_an_interrupt_ends_the_workers_and_keeps_what_they_had() -> None:
    """Ctrl-C goes on as the interrupt after every ask that was under way came back as cancelled."""
    got: list[Exchange] = []
    began_s = monotonic()

    def interrupt() -> bool:
        if monotonic() - began_s > 1:
            raise KeyboardInterrupt
        return False

    with served(_silent) as url, Crew([Here(2)]) as crew:
        began_s = monotonic()
        with pytest.raises(KeyboardInterrupt):
            crew.drive(
                Flood(range(4), 4), target_of(url, model="m"), start_s=began_s, on_end=got.append, stop=interrupt
            )
    assert [each.outcome for each in got] == [Outcome.CANCELLED] * 4


def test_a_crew_drives_again() -> None:
    """The same workers send a second schedule, to the end."""
    got: list[Exchange] = []
    with served(_answer) as url, Crew([Here(2)]) as crew:
        for _ in range(2):
            crew.drive(Flood(range(6), 2), target_of(url, model="m"), start_s=monotonic(), on_end=got.append)
    assert len(got) == 12
