"""Conversations: each turn's prompt is the history so far, with the server's own replies in it."""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from servewise.errors import InputError
from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange
from servewise.measure.load.ends import ended_s
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.thinking import NO_THINKING, Thinking
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due, Schedule
from servewise.workload.lengths import Lengths
from servewise.workload.streams import stream

MOST_TURNS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """How a conversation goes on after its first prompt.

    ``turns`` in all, ``input_tokens`` of each later question, ``output_tokens`` of its reply; every conversation draws
    from its own streams of ``seed``. ``sessions`` is the number of conversations (an upper bound where it is open):
    turn t of session s has the serial t x sessions + s. ``context_tokens`` ends a conversation that would outgrow it.
    """

    turns: Lengths
    input_tokens: Lengths
    output_tokens: Lengths
    prompts: Prompts
    sessions: int
    seed: int
    thinking: Thinking = NO_THINKING
    context_tokens: int | None = None

    def follows(self, exchange: Exchange) -> Ask | None:
        """The next turn's ask once ``exchange`` has ended; None where that was the last."""
        session, turn = exchange.ask.serial % self.sessions, exchange.ask.turn + 1
        if exchange.outcome is not Outcome.COMPLETED or turn >= self.turns_of(session):
            return None
        rng = stream(self.seed, "turn lengths", session, turn)
        asked, output = (int(lengths.draw(rng, 1)[0]) for lengths in (self.input_tokens, self.output_tokens))
        if self._outgrown(exchange, asked + output):
            return None
        assert exchange.text is not None, "a conversation needs the texts of replies: send it with keep_text"
        question = self.prompts.text(asked, "turn text", session, turn).content
        assert isinstance(question, str), "a conversation is made of words"
        body = continued(exchange.ask.body, exchange.text, question, output)
        return Ask(
            serial=turn * self.sessions + session,
            body=body,
            output_tokens=output,
            group=session,
            turn=turn,
            streamed=exchange.ask.streamed,
        )

    def turns_of(self, session: int) -> int:
        """How many turns conversation ``session`` has."""
        return min(int(self.turns.draw(stream(self.seed, "turns", session), 1)[0]), MOST_TURNS)

    def _outgrown(self, exchange: Exchange, more_tokens: int) -> bool:
        if self.context_tokens is None or exchange.prompt_tokens is None:
            return False
        return exchange.prompt_tokens + (exchange.output_tokens or 0) + more_tokens > self.context_tokens


class _Next(NamedTuple):
    """A later turn, in order of time and serial."""

    due_s: float
    serial: int
    ask: Ask


class SessionSchedule:
    """Every ask of ``inner`` opens a conversation, which ``talk`` carries on.

    A later turn is scheduled when the reply before it has ended and its user has thought. ``inner`` hears of the
    conversation's end alone, so that a closed loop's user stays with it and an open loop's cap counts conversations. A
    turn that fails ends its conversation.
    """

    def __init__(self, inner: Schedule, talk: Talk) -> None:
        self._inner, self._talk = inner, talk
        self._next: list[_Next] = []
        self._under_way = 0
        self._seen_s = -inf

    def next_due_s(self) -> float | None:
        """The earlier of the next later turn and the next new conversation."""
        inner_s = self._inner.next_due_s()
        if not self._next:
            return inner_s
        return self._next[0].due_s if inner_s is None else min(inner_s, self._next[0].due_s)

    def take(self, now_s: float) -> Due | None:
        """A later turn whose time has come, else a new conversation."""
        self._seen_s = now_s
        if self._next and self._next[0].due_s <= now_s:
            due: Due | None = Due(self._next[0].ask, heapq.heappop(self._next).due_s)
        else:
            due = self._inner.take(now_s)
        self._under_way += due is not None
        return due

    def ended(self, exchange: Exchange) -> None:
        """Carry the conversation on, or pass its end on."""
        self._under_way -= 1
        ask = self._talk.follows(exchange)
        if ask is None:
            self._inner.ended(exchange)
            return
        due_s = ended_s(exchange, self._seen_s) + self._talk.thinking.after(exchange.ask.serial)
        heapq.heappush(self._next, _Next(due_s, ask.serial, ask))

    @property
    def finished(self) -> bool:
        """Whether no turn waits or is under way, and no conversation is left to open."""
        return not self._next and not self._under_way and self._inner.finished

    def split(self, workers: int) -> Sequence[SessionSchedule]:
        """A conversation stays with one worker."""
        return [SessionSchedule(part, self._talk) for part in self._inner.split(workers)]


def continued(body: bytes, reply: str, question: str, output_tokens: int) -> bytes:
    """``body`` with the reply and the next question after its messages (or its prompt's text).

    >>> continued(b'{"prompt":"a","max_tokens":1}', "b", "c", 2)
    b'{"prompt":"ab\\\\nc","max_tokens":2}'
    """
    fields: dict[str, Any] = json.loads(body)
    if "messages" in fields:
        said = [{"role": "assistant", "content": reply}, {"role": "user", "content": question}]
        fields["messages"] = [*fields["messages"], *said]
    elif isinstance(fields["prompt"], str):
        fields["prompt"] = f"{fields['prompt']}{reply}\n{question}"
    else:
        raise InputError("a conversation cannot be made of token ids", hint="use words")
    fields["max_tokens"] = output_tokens
    return json.dumps(fields, separators=(",", ":")).encode("ascii")
