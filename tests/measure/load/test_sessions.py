"""Conversations: the history with the server's own replies, turn after turn, each with its own worker."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from tests.measure.load.driving import driven, ended, taking

from servewise.errors import InputError
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import TokenIds
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.sessions import SessionSchedule, continued
from servewise.measure.load.thinking import Thinking
from servewise.measure.load.wanted import Conversations, LoadWanted, schedule_for
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due
from servewise.measure.target import Api
from servewise.workload.lengths import Fixed, Lengths, Uniform

CHAT: Api = "chat"


def talking(
    turns: Lengths, sessions: int = 2, concurrency: int = 1, think_s: float = 0.0, context: int | None = None
) -> SessionSchedule:
    """Conversations whose first question has 6 words and whose later ones have 3."""
    wanted = LoadWanted(
        input_tokens=Fixed(6),
        output_tokens=Fixed(4),
        requests=sessions,
        thinking=Thinking(think_s),
        conversations=Conversations(turns, Fixed(3), context),
    )
    assert wanted.needs_text
    found = schedule_for(wanted, Prompts(seed=1), Form(model="m", api=CHAT), seed=1, concurrency=concurrency)
    assert isinstance(found, SessionSchedule)
    return found


def messages(exchange: Exchange) -> list[dict[str, Any]]:
    """The messages that were sent."""
    found: list[dict[str, Any]] = json.loads(exchange.ask.body)["messages"]
    return found


def test_each_turn_holds_the_whole_history_with_the_servers_replies() -> None:
    """Turn t sends the first question, and t replies and questions after it, in order."""
    schedule = talking(Fixed(3), sessions=1)
    done = driven(schedule, lambda due, now_s: ended(due, now_s, now_s + 1, text=f"reply {due.ask.turn}"))
    assert [len(messages(each)) for each in done] == [1, 3, 5]
    assert [each["role"] for each in messages(done[2])] == ["user", "assistant", "user", "assistant", "user"]
    assert [each["content"] for each in messages(done[2]) if each["role"] == "assistant"] == ["reply 0", "reply 1"]
    assert messages(done[2])[:3] == messages(done[1])
    assert [len(each["content"].split()) for each in messages(done[2]) if each["role"] == "user"] == [6, 3, 3]


def test_turns_follow_each_other_after_the_time_to_think() -> None:
    """One user, 1 s a reply and 2 s to think: turns at 0, 3, 6 s, the next conversation after another thought."""
    done = driven(talking(Fixed(3), think_s=2.0), taking(1.0, text="r"))
    assert [each.sent_s for each in done] == [0, 3, 6, 9, 12, 15]
    assert [each.ask.turn for each in done] == [0, 1, 2, 0, 1, 2]
    assert all(each.sent_s == each.scheduled_s for each in done)


def test_serials_are_one_for_each_turn() -> None:
    """Turn t of session s is t x sessions + s."""
    done = driven(talking(Fixed(3)), taking(1.0, text="r"))
    assert [each.ask.serial for each in done] == [0, 2, 4, 1, 3, 5]
    assert [each.ask.group for each in done if each.ask.turn] == [0, 0, 1, 1]


def test_a_failed_turn_ends_its_conversation() -> None:
    """No question follows an answer that did not come."""

    def answer(due: Due, now_s: float) -> Exchange:
        outcome = Outcome.RESET if due.ask.turn == 1 else Outcome.COMPLETED
        return ended(due, now_s, now_s + 1, outcome=outcome, text="r")

    assert [each.ask.turn for each in driven(talking(Fixed(5)), answer)] == [0, 1, 0, 1]


def test_a_conversation_ends_before_it_outgrows_the_context() -> None:
    """With 10 tokens of history and reply, 3 asked and 4 wanted, 16 are too few and 17 enough."""
    answer = taking(1.0, text="r", prompt_tokens=6, output_tokens=4)
    assert len(driven(talking(Fixed(2), sessions=1, context=16), answer)) == 1
    assert len(driven(talking(Fixed(2), sessions=1, context=17), answer)) == 2


@pytest.mark.parametrize("workers", [2, 3])
def test_a_split_sends_the_same_turns(workers: int) -> None:
    """Given the same replies, the workers' bodies are those of one sender, with other numbers of turns each."""

    def answer(due: Due, now_s: float) -> Exchange:
        return ended(due, now_s, now_s + 1, text=f"reply {due.ask.serial}")

    whole = talking(Uniform(1, 5), sessions=12, concurrency=4)
    parts = [driven(pickle.loads(pickle.dumps(part)), answer) for part in whole.split(workers)]
    alone = driven(whole, answer)
    assert sorted(each.ask.body for part in parts for each in part) == sorted(each.ask.body for each in alone)
    assert len({each.ask.turn for each in alone}) > 2


def test_it_is_finished_after_the_last_turn_only() -> None:
    """While a reply is under way another turn may follow."""
    schedule = talking(Fixed(2), sessions=1)
    first = schedule.take(0.0)
    assert first is not None
    assert not schedule.finished
    schedule.ended(ended(first, 0.0, 1.0, text="r"))
    second = schedule.take(1.0)
    assert second is not None
    assert not schedule.finished
    schedule.ended(ended(second, 1.0, 2.0, text="r"))
    assert schedule.finished


def test_completions_go_on_as_text_and_token_ids_cannot() -> None:
    """The reply stands after the prompt, and the question on a line of its own."""
    body = json.loads(continued(Form(model="m", api="completions").body(Prompts(seed=1).text(2, "x"), 1), "R", "Q", 9))
    assert body["prompt"].endswith("R\nQ")
    assert body["max_tokens"] == 9
    ids = Prompts(seed=1, material=TokenIds()).text(2, "x")
    with pytest.raises(InputError, match="token ids"):
        continued(Form(model="m", api="completions").body(ids, 1), "R", "Q", 9)
