"""However a load is split over workers, together they send what one sender would."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measure.load.driving import driven, ended, most_under_way

from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.retry import RetryRule, last_attempts
from servewise.measure.load.wanted import Conversations, LoadWanted, schedule_for
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due
from servewise.workload.lengths import Uniform
from servewise.workload.prefix import SharedPrefix

wishes = st.fixed_dictionaries(
    {
        "requests": st.integers(1, 25),
        "arrivals": st.sampled_from(["poisson", "constant", "gamma:2"]),
        "prefix": st.sampled_from([None, SharedPrefix(2, 9), SharedPrefix(3, 5, share=0.5)]),
        "conversations": st.sampled_from([None, Conversations(Uniform(1, 3), Uniform(1, 4))]),
        "retries": st.sampled_from([None, RetryRule(most=2)]),
    }
)
conditions = st.one_of(
    st.builds(lambda users: {"concurrency": users}, st.integers(1, 9)),
    st.builds(lambda rate, cap: {"rate_per_s": rate, "max_in_flight": cap}, st.floats(0.1, 50), st.integers(1, 9)),
)


def answered(due: Due, now_s: float) -> Exchange:
    """By the request alone: some take long, some are refused with a 429 the first time, all have a text."""
    serial = due.ask.serial
    if serial % 5 == 3 and not due.retries:
        return ended(due, now_s, now_s, outcome=Outcome.RATE_LIMITED, retry_after_s=0.5)
    return ended(due, now_s, now_s + 0.1 + serial % 7, text=f"reply {serial}")


@settings(deadline=None, max_examples=60)
@given(wishes, conditions, st.integers(1, 6), st.integers(0, 3))
def test_workers_together_send_what_one_would(
    wish: dict[str, Any], how: dict[str, Any], workers: int, seed: int
) -> None:
    """The same bodies, each request once, with no more users or requests in flight than asked for in all."""
    cap = how.get("max_in_flight")
    wanted = LoadWanted(
        input_tokens=Uniform(1, 20), output_tokens=Uniform(1, 5), max_in_flight=cap, stagger_s=1.0, **wish
    )
    at = {name: value for name, value in how.items() if name != "max_in_flight"}
    whole = schedule_for(wanted, Prompts(seed=seed), Form(model="m", api="chat"), seed=seed, **at)
    parts = [driven(pickle.loads(pickle.dumps(part)), answered) for part in whole.split(workers)]
    alone = last_attempts(driven(whole, answered))
    together = [each for part in parts for each in last_attempts(part)]
    assert sorted(each.ask.serial for each in together) == sorted({each.ask.serial for each in alone})
    assert sorted(each.ask.body for each in together) == sorted(each.ask.body for each in alone)
    assert sum(most_under_way(part) for part in parts) <= (cap or how.get("concurrency", 0))


@settings(deadline=None, max_examples=60)
@given(wishes, conditions)
def test_no_request_leaves_before_it_is_scheduled(wish: dict[str, Any], how: dict[str, Any]) -> None:
    """Sent - scheduled is never negative, and a request that is held back or repeated leaves when it may."""
    wanted = LoadWanted(
        input_tokens=Uniform(1, 20), output_tokens=Uniform(1, 5), max_in_flight=how.get("max_in_flight"), **wish
    )
    at = {name: value for name, value in how.items() if name != "max_in_flight"}
    schedule = schedule_for(wanted, Prompts(seed=1), Form(model="m", api="chat"), seed=1, **at)
    late: list[float] = []

    def answer(due: Due, now_s: float) -> Exchange:
        late.append(now_s - (due.scheduled_s if due.ready_s is None else due.ready_s))
        return answered(due, now_s)

    driven(schedule, answer)
    assert schedule.finished
    assert all(each == 0 for each in late)
