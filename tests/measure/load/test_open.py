"""The open loop: times that do not wait for the server, a cap that hides no waiting, and an exact split."""

from __future__ import annotations

import pickle

import pytest
from tests.measure.load.driving import driven, ended, most_under_way, taking

from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.fixed import at_times
from servewise.measure.load.open import OpenSchedule
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.wanted import LoadWanted, schedule_for
from servewise.measure.schedule import Due
from servewise.workload.arrivals import Poisson
from servewise.workload.lengths import Fixed
from servewise.workload.streams import stream


def opened(arrivals: str, rate_per_s: float, requests: int = 20, max_in_flight: int | None = None) -> OpenSchedule:
    """An open loop over short prompts."""
    lengths = Fixed(4)
    wanted = LoadWanted(
        input_tokens=lengths,
        output_tokens=lengths,
        requests=requests,
        arrivals=arrivals,
        max_in_flight=max_in_flight,
    )
    found = schedule_for(wanted, Prompts(seed=1), Form(model="m", api="chat"), seed=1, rate_per_s=rate_per_s)
    assert isinstance(found, OpenSchedule)
    return found


def test_constant_arrivals_leave_whatever_the_server_does() -> None:
    """Ten a second and answers of 100 s: one leaves every 0.1 s."""
    exchanges = driven(opened("constant", 10.0), taking(100.0))
    assert [each.sent_s for each in exchanges] == pytest.approx([(at + 1) / 10 for at in range(20)])
    assert most_under_way(exchanges) == 20


def test_times_are_those_of_the_workload() -> None:
    """The same seed gives the arrivals that a simulation of the workload has."""
    times = next(Poisson(3.0).times(stream(1, "arrivals")))[:20].tolist()
    assert [each.scheduled_s for each in driven(opened("poisson", 3.0), taking(0.1))] == times


def test_a_cap_holds_back_and_keeps_the_scheduled_time() -> None:
    """Ten a second of 1 s each under a cap of 4: never more than 4, in fours a second, and the wait is not hidden."""
    exchanges = driven(opened("constant", 10.0, 12, max_in_flight=4), taking(1.0))
    assert most_under_way(exchanges) == 4
    assert [each.scheduled_s for each in exchanges] == pytest.approx([(at + 1) / 10 for at in range(12)])
    assert [each.sent_s for each in exchanges] == pytest.approx(
        [0.1, 0.2, 0.3, 0.4, 1.1, 1.2, 1.3, 1.4, 2.1, 2.2, 2.3, 2.4]
    )


def test_a_request_held_back_says_from_when_it_could_leave() -> None:
    """The client is late by sent - ready; without a cap ready is the scheduled time itself."""
    seen: list[float | None] = []

    def answer(due: Due, now_s: float) -> Exchange:
        seen.append(due.ready_s)
        return ended(due, now_s, now_s + 1.0)

    driven(opened("constant", 10.0, 3, max_in_flight=1), answer)
    driven(opened("constant", 10.0, 3), answer)
    assert seen == [None, pytest.approx(1.1), pytest.approx(2.1), None, None, None]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("cap", [None, 2, 5])
def test_a_split_deals_requests_and_cap_exactly(workers: int, cap: int | None) -> None:
    """Together the workers send the same asks at the same scheduled times, and never more than the cap."""
    whole = opened("poisson", 50.0, 40, max_in_flight=cap)
    parts = [driven(pickle.loads(pickle.dumps(part)), taking(0.2)) for part in whole.split(workers)]
    sent = sorted((each.ask.serial, each.ask.body, each.scheduled_s) for part in parts for each in part)
    assert sent == sorted((each.ask.serial, each.ask.body, each.scheduled_s) for each in driven(whole, taking(0.2)))
    assert cap is None or sum(most_under_way(part) for part in parts) <= cap
    assert all(part for part in parts[: min(workers, cap or workers)])


def test_given_asks_leave_at_given_times() -> None:
    """In order of time, whatever their order in the list."""
    asks = [each.ask for each in driven(opened("constant", 10.0, 3), taking(0.0))]
    dues = [Due(asks[0], 3.0), Due(asks[1], 1.0), Due(asks[2], 2.0)]
    assert [(each.sent_s, each.ask.serial) for each in driven(at_times(dues), taking(0.0))] == [(1, 1), (2, 2), (3, 0)]


def test_it_is_finished_when_all_have_left() -> None:
    """Not before, and even while answers are still to come."""
    loop = opened("constant", 10.0, 2)
    assert not loop.finished
    assert loop.take(0.05) is None
    assert loop.take(0.1) is not None
    assert not loop.finished
    assert loop.take(0.2) is not None
    assert loop.finished
    assert loop.next_due_s() is None
