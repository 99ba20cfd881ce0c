"""The door: what a bench wants becomes a workload that can be simulated and a schedule that can be sent."""

from __future__ import annotations

from typing import Any

import pytest
from tests.measure.load.driving import driven, taking, text_of

from servewise.errors import InputError
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import Prompt, TokenIds
from servewise.measure.load.prompt_file import FilePrompt
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.retry import RetryRule, RetrySchedule
from servewise.measure.load.wanted import Conversations, LoadWanted, schedule_for
from servewise.workload.lengths import Fixed
from servewise.workload.load import load_workload
from servewise.workload.prefix import SharedPrefix
from servewise.workload.synthetic import Synthetic
from servewise.workload.traces.trace import Trace

FORM = Form(model="m", api="completions")


def small(**more: Any) -> LoadWanted:
    """A load of short prompts."""
    fields: dict[str, Any] = {"input_tokens": Fixed(8), "output_tokens": Fixed(4), "requests": 30}
    return LoadWanted(**fields | more)


def test_what_is_sent_is_what_the_workload_says() -> None:
    """Times and lengths of the asks are those of the workload that a simulation would take, one by one."""
    wanted = small(arrivals="gamma:2")
    load = wanted.workload(rate_per_s=4.0)
    assert isinstance(load, Synthetic)
    done = driven(schedule_for(wanted, Prompts(seed=1), FORM, seed=9, rate_per_s=4.0), taking(0.0))
    sent = [(each.scheduled_s, each.ask.prompt_tokens, each.ask.output_tokens) for each in done]
    assert sent == [(each.arrival_s, each.prompt_tokens, each.output_tokens) for each in load.requests(9)]


def test_lengths_are_the_same_at_every_condition() -> None:
    """Two rates and a concurrency send the same prompts in the same order (with one salt)."""
    at: list[dict[str, Any]] = [{"rate_per_s": 1.0}, {"rate_per_s": 50.0}, {"concurrency": 3}]
    bodies = [
        [each.ask.body for each in driven(schedule_for(small(), Prompts(seed=1), FORM, seed=1, **how), taking(0.01))]
        for how in at
    ]
    assert bodies[0] == bodies[1] == bodies[2]


def test_a_shared_prefix_is_shared_whole() -> None:
    """Two groups of 50 tokens before 8 own ones: every text begins with one of two beginnings of 50 words."""
    wanted = small(prefix=SharedPrefix(groups=2, tokens=50))
    done = driven(schedule_for(wanted, Prompts(seed=1), FORM, seed=1, concurrency=1), taking(0.1))
    starts = {" ".join(text_of(each).split()[:50]) for each in done}
    assert len(starts) == 2
    assert {len(text_of(each).split()) for each in done} == {58}
    assert len({text_of(each) for each in done}) == 30
    assert {each.ask.group for each in done} == {0, 1}


def test_a_trace_replaces_arrivals_and_lengths() -> None:
    """At its own rate, or at another; never closed."""
    trace = load_workload("azure-conv", requests=20)
    assert isinstance(trace, Trace)
    wanted = small(trace=trace, requests=None)
    own = driven(schedule_for(wanted, Prompts(seed=1), FORM, seed=1), taking(0.1))
    fast = driven(schedule_for(wanted, Prompts(seed=1), FORM, seed=1, rate_per_s=trace.rate_per_s * 2), taking(0.1))
    assert len(own) == 20
    assert [each.scheduled_s / 2 for each in own] == pytest.approx([each.scheduled_s for each in fast])
    with pytest.raises(InputError, match="times of its own"):
        schedule_for(wanted, Prompts(seed=1), FORM, seed=1, concurrency=2)


def test_prompts_of_a_file_are_sent_in_order() -> None:
    """The file's texts at the workload's times."""
    prompts = tuple(FilePrompt(Prompt(text)) for text in ("a", "b", "c"))
    done = driven(schedule_for(small(file_prompts=prompts), Prompts(seed=1), FORM, seed=1, rate_per_s=2), taking(0.0))
    assert [text_of(each) for each in done[:4]] == ["a", "b", "c", "a"]


def test_retries_wrap_any_load() -> None:
    """A rule of retries gives a schedule that honours it."""
    found = schedule_for(small(retries=RetryRule()), Prompts(seed=1), FORM, seed=1, rate_per_s=2)
    assert isinstance(found, RetrySchedule)


def test_a_run_by_time_ends_by_time() -> None:
    """No number of requests: constant arrivals at 10 a second for 2 s are 20."""
    wanted = small(requests=None, duration_s=2.0, arrivals="constant")
    assert len(driven(schedule_for(wanted, Prompts(seed=1), FORM, seed=1, rate_per_s=10), taking(0.0))) == 20


@pytest.mark.parametrize(
    ("more", "how", "says"),
    [
        ({}, {"rate_per_s": 1.0, "concurrency": 1}, "not both"),
        ({}, {}, "needs? a rate"),
        ({"requests": None}, {"rate_per_s": 1.0}, "needs an end"),
        ({"arrivals": "poison"}, {"rate_per_s": 1.0}, "poisson"),
        ({}, {"rate_per_s": 0.0}, "rate"),
        ({}, {"concurrency": 0}, "concurrency"),
        ({"max_in_flight": 0}, {"rate_per_s": 1.0}, "in flight"),
    ],
)
def test_wrong_wishes_are_one_line(more: dict[str, Any], how: dict[str, Any], says: str) -> None:
    """Each says what is wrong."""
    with pytest.raises(InputError, match=says):
        schedule_for(small(**more), Prompts(seed=1), FORM, seed=1, **how)


def test_what_the_endpoint_does_not_take_is_refused_before_the_run() -> None:
    """Token ids for a chat, messages for completions, ids in a conversation: known when the schedule is made."""
    ids, messages = FilePrompt(Prompt((1, 2))), FilePrompt(Prompt(({"role": "user", "content": "a"},)))
    chat, made = Form(model="m", api="chat"), Prompts(seed=1, material=TokenIds())
    talk = Conversations(Fixed(2), Fixed(2))
    with pytest.raises(InputError, match="completions endpoint"):
        schedule_for(small(), made, chat, seed=1, concurrency=1)
    with pytest.raises(InputError, match="completions endpoint"):
        schedule_for(small(file_prompts=(ids,)), Prompts(seed=1), chat, seed=1, concurrency=1)
    with pytest.raises(InputError, match="chat endpoint"):
        schedule_for(small(file_prompts=(messages,)), Prompts(seed=1), FORM, seed=1, concurrency=1)
    with pytest.raises(InputError, match="conversation"):
        schedule_for(small(conversations=talk), made, FORM, seed=1, concurrency=1)
    with pytest.raises(InputError, match="conversation"):
        schedule_for(small(conversations=talk, file_prompts=(ids,)), Prompts(seed=1), FORM, seed=1, concurrency=1)


def test_a_prompt_longer_than_any_model_is_one_line() -> None:
    """Lengths without a cap do not end in an exhausted memory."""
    schedule = schedule_for(small(input_tokens=Fixed(10**8)), Prompts(seed=1), FORM, seed=1, concurrency=1)
    with pytest.raises(InputError, match="cap"):
        schedule.next_due_s()


def test_a_file_of_prompts_has_no_prefix_made_for_it() -> None:
    """What would be ignored is refused."""
    prompts = (FilePrompt(Prompt("a")),)
    with pytest.raises(InputError, match="file"):
        small(file_prompts=prompts, prefix=SharedPrefix(1, 10))
    with pytest.raises(InputError, match="poisson"):
        small(arrivals="uniform").workload(rate_per_s=1.0)
