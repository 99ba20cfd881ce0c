"""From what is asked to the script of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from servewise.measure.mock.asked import Asked
from servewise.measure.mock.documents import (
    Field,
    Usage,
    plain_events,
    role_event,
    token_event,
    usage_event,
    whole_answer,
)
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.heads import head_of, stream_head
from servewise.measure.mock.layout import around, comments, event_of, frame, framed_body, laid
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.script import End, Script, Write
from servewise.measure.mock.shape import Shape
from servewise.measure.mock.spoil import spoil_bytes, spoil_events, spoil_shape
from servewise.measure.mock.vocabulary import changed, drawn


def script_of(
    asked: Asked, plan: MockPlan, shape: Shape, *, first_s: float, cached: int, fault: Fault | None = None
) -> Script:
    """The answer to ``asked`` whose first token is due ``first_s`` after its service began."""
    writer = _Writer(asked, plan, shape, first_s, cached)
    told = Script(tokens=writer.tokens, prompt_tokens=asked.prompt_tokens, cached_tokens=cached)
    if not asked.streamed or shape.document:
        script = replace(told, writes=(writer.whole(),), end=_end(shape))
        return script if fault is None else spoil_bytes(fault, script)
    events = writer.events()
    if fault is not None:
        events, shape = spoil_events(fault, events, shape), spoil_shape(fault, shape)
    early = shape.role == "early" and asked.api == "chat"
    first = frame(event_of(role_event(plan.model), shape), shape) if early else b""
    writes = framed_body(laid(events, shape), shape)
    head = stream_head(shape, len(first) + sum(len(each.data) for each in writes))
    script = replace(told, at_once=head + first, writes=writes, end=_end(shape))
    return script if fault is None else spoil_bytes(fault, script)


class _Writer:
    """The events of one answer, unframed, each with its time."""

    def __init__(self, asked: Asked, plan: MockPlan, shape: Shape, first_s: float, cached: int) -> None:
        self.asked, self.plan, self.shape, self.first_s = asked, plan, shape, first_s
        most = asked.most_tokens
        self.tokens = most if plan.tokens is None or asked.to_the_end else min(plan.tokens, most)
        words = drawn(asked.prompt, plan.seed, self.tokens)
        self.words = changed(words, asked.prompt, plan.seed, plan.changed_share)
        self.cached = cached if plan.cached_tokens or plan.prefix_block else None
        self.every = shape.usage == "every" or (shape.usage == "asked" and asked.usage == "every")

    def due_s(self, told: int) -> float:
        """When the event is due with which ``told`` tokens are out."""
        return self.first_s + (told - min(self.shape.tokens_per_event, self.tokens)) * self.plan.gap_s

    @property
    def finish(self) -> str | None:
        """Why it ends."""
        if self.shape.finish == "none":
            return None
        if self.shape.tool_calls and self.asked.api == "chat":
            return "tool_calls"
        return "length" if self.tokens == self.asked.most_tokens else "stop"

    def usage(self, told: int) -> Usage:
        """The counts when ``told`` tokens are out."""
        return Usage(self.asked.prompt_tokens, told, self.cached)

    def events(self) -> list[Write]:
        """Every event with a token, in its time; what has none lies with its neighbour.

        Where writes are split the tail stands alone: the piece that ends the last token's event is then the one that is
        logged with it, and not the one that ends [DONE].
        """
        plain = self.shape.plain and not self.every and self.asked.logprobs is None
        events = list(self._plain() if plain else self._rich())
        if self.shape.role == "with-first" and self.asked.api == "chat":
            events[0] = events[0]._replace(data=event_of(role_event(self.plan.model), self.shape) + events[0].data)
        if self.shape.writes == "split":
            return [*events, Write(events[-1].after_s, self._tail())]
        events[-1] = events[-1]._replace(data=events[-1].data + self._tail())
        return events

    def _plain(self) -> Iterator[Write]:
        table, last = plain_events(self.asked.api, self.plan.model), self.tokens - 1
        begin, end = around(self.shape)
        for place, word in enumerate(self.words[:last]):
            yield Write(self.first_s + place * self.plan.gap_s, begin + table[word] + end, 1)
        yield Write(self.due_s(self.tokens), event_of(self._tokens(last, self.tokens), self.shape), 1)

    def _rich(self) -> Iterator[Write]:
        step = self.shape.tokens_per_event
        for begin in range(0, self.tokens, step):
            told = min(begin + step, self.tokens)
            data = event_of(self._tokens(begin, told), self.shape)
            yield Write(self.due_s(told), comments(begin, self.shape) + data, told - begin)

    def _tokens(self, begin: int, told: int) -> bytes:
        last = told == self.tokens and self.shape.finish == "with"
        return token_event(
            self.asked.api,
            self.plan.model,
            self.words[begin:told],
            field=self._field(begin),
            first=begin == 0,
            finish=self.finish if last else None,
            usage=self.usage(told) if self.every else None,
            logprobs=self.asked.logprobs,
        )

    def _field(self, begin: int) -> Field:
        if self.shape.tool_calls:
            return "tool_calls"
        return self.shape.reasoning_field if begin < self.shape.reasoning_tokens else "content"

    def _tail(self) -> bytes:
        """What comes after the last token: finish reason, usage, [DONE]."""
        api, model, usage = self.asked.api, self.plan.model, self.usage(self.tokens)
        parts = []
        if self.shape.finish == "after":
            told = usage if self.every or self.shape.usage == "finish" else None
            parts.append(token_event(api, model, b"", finish=self.finish, usage=told))
        if self.shape.usage == "last" or (self.shape.usage == "asked" and self.asked.usage != "no"):
            parts.append(usage_event(api, model, usage))
        if self.shape.done:
            parts.append(b"[DONE]")
        return b"".join(event_of(each, self.shape) for each in parts)

    def whole(self) -> Write:
        """The answer as one JSON document, when its last token is due."""
        usage = None if self.shape.usage == "none" else self.usage(self.tokens)
        body = whole_answer(
            self.asked.api,
            self.plan.model,
            self.words,
            field=self._field(0),
            finish=self.finish,
            usage=usage,
            logprobs=self.asked.logprobs,
        )
        head = head_of(200, "OK", len(body), closes=self.shape.closes == "said")
        return Write(self.due_s(self.tokens), head + body, self.tokens)


def _end(shape: Shape) -> End:
    if shape.closes == "reset":
        return End.RESET
    return End.KEEP if shape.closes == "no" and shape.framing != "close" else End.CLOSE
