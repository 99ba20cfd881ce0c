"""The events of one answer, read one after another."""

from __future__ import annotations

from typing import Any

import orjson

from servewise.measure.dialect.choice import Brought, brought_by
from servewise.measure.dialect.event_stream import Event
from servewise.measure.dialect.fault import error_in, line_of, one_line
from servewise.measure.dialect.usage import Usage, usage_in
from servewise.measure.exchange import Arrival
from servewise.measure.outcome import Outcome

_BROKEN_ENDINGS = ("error", "abort")  # vLLM and SGLang end a request that their engine dropped so


class Reading:
    """What the events of one answer said so far.

    ``fault`` is set once, by the first event that no good answer holds: nothing is read after it.
    """

    def __init__(self, *, keep_text: bool = False, keep_logprobs: bool = False) -> None:
        self.events = 0
        self.done = False  # [DONE] was seen
        self.finish_reason: str | None = None
        self.usage = Usage()
        self.fault: tuple[Outcome, str] | None = None
        self.texts: list[str] = []
        self.logprobs: list[object] = []
        self.keep_text, self._keep_logprobs = keep_text, keep_logprobs
        self._times: list[float] = []
        self._reasoning: list[bool] = []
        self._ways: tuple[list[int | None], list[int | None], list[int | None]] = ([], [], [])

    def take(self, event: Event, time_s: float) -> None:
        """Read an event whose last byte came at ``time_s``."""
        if self.fault:
            return
        if event.data.rstrip() == b"[DONE]":
            self.done = True
            return
        self.events += 1
        parsed = _parsed(event.data)
        if event.kind == b"error" and not (isinstance(parsed, dict) and error_in(parsed)):
            self.fault = Outcome.ERROR_IN_STREAM, line_of(event.data.decode("utf-8", "replace"))
        elif not isinstance(parsed, dict):
            self.fault = Outcome.BAD_EVENT, f"event {self.events} is no JSON object: {_beginning(event.data)}"
        else:
            self.take_object(parsed, time_s, Outcome.ERROR_IN_STREAM)

    def take_object(self, answer: dict[Any, Any], time_s: float, on_error: Outcome) -> None:
        """Read an event's object or a whole answer."""
        error = error_in(answer)
        if error is not None:
            self.fault = on_error, error
            return
        usage = usage_in(answer)
        if usage is not None:
            self.usage = Usage(*(new if new is not None else old for new, old in zip(usage, self.usage, strict=True)))
        choices = answer.get("choices")
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict):
                    self._note(brought_by(choice, keep_logprobs=self._keep_logprobs), usage, time_s)
        elif usage is None and on_error is Outcome.ERROR_IN_BODY:
            self.fault = Outcome.BAD_EVENT, "the answer holds no choices"

    def arrivals(self) -> tuple[Arrival, ...]:
        """The output as it came, with the tokens of each event where the server says them."""
        tokens = self._tokens()
        return tuple(map(Arrival, self._times, tokens, self._reasoning))

    @property
    def outputs(self) -> int:
        """How many events brought output."""
        return len(self._times)

    def _note(self, brought: Brought, usage: Usage | None, time_s: float) -> None:
        if brought.finish_reason:
            self.finish_reason = brought.finish_reason
            if brought.finish_reason in _BROKEN_ENDINGS:
                self.fault = Outcome.ERROR_IN_STREAM, f"finish_reason is {brought.finish_reason!r}"
        if self.keep_text and brought.text:
            self.texts.append(brought.text)
        self.logprobs += brought.logprobs
        if brought.output:
            self._times.append(time_s)
            self._reasoning.append(brought.reasoning)
            counted = usage.output if usage is not None else None
            for way, tokens in zip(self._ways, (brought.by_ids, counted, brought.by_logprobs), strict=True):
                way.append(tokens)

    def _tokens(self) -> list[int | None]:
        """Tokens of each arrival by ids, else by the running usage, else by logprobs; a way must hold for all."""
        by_ids, running, by_logprobs = self._ways
        if by_ids and None not in by_ids:
            return by_ids
        differences = _differences(running)
        if differences:
            return differences
        if by_logprobs and None not in by_logprobs:
            return by_logprobs
        return [None] * len(self._times)


def _differences(running: list[int | None]) -> list[int | None]:
    """Tokens by event of a running count; empty where it is missing once, falls, or is given whole in each event."""
    known = [each for each in running if each is not None]
    if len(known) < len(running) or (len(known) > 1 and known[0] == known[-1]):
        return []
    steps = [after - before for before, after in zip([0, *known], known, strict=False)]
    return list(steps) if min(steps, default=-1) >= 0 else []


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError:
        return None


def _beginning(data: bytes) -> str:
    return repr(one_line(data[:80].decode("utf-8", "replace")))
