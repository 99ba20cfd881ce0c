"""One request in the engine: the scheduler's sequence, with its tokens, text, times and end beside it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from collections.abc import Sequence as Tokens
from math import isnan, nan
from typing import NamedTuple

import numpy as np

from servewise.batching.sequence import Sequence
from servewise.engine.running.text import OutputText
from servewise.engine.sampling.penalties import History
from servewise.engine.sampling.sampler import Choice, Row
from servewise.engine.sampling_settings import SamplingSettings


class Generation(Sequence):
    """A request's handle. Times are seconds from the engine's start, NaN until they came.

    ``tokens`` are the prompt and the reply so far, ``choices`` the reply's tokens with their log probabilities.
    ``status`` is None until the end (then a status of ``records.columns``); ``finish_reason`` is ``stop`` (an end
    token or a stop string), ``length``, ``cancelled``, ``failed`` or ``rejected`` (then ``error`` says why). A static
    batch may know the reason long before it ends: its replies are released together.
    """

    admitted_s = nan
    first_token_s = nan
    end_s = nan
    prefill_from_s = nan  # since when its prompt is being computed
    left_s = nan  # since when it has been preempted
    prefill_s = 0.0
    preempted_s = 0.0
    status: int | None = None
    finish_reason: str | None = None
    error = ""
    answer_hashed = True

    def __init__(
        self,
        serial: int,
        prompt: Tokens[int],
        output_tokens: int,
        settings: SamplingSettings,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(serial, len(prompt), output_tokens)
        self.tokens = list(prompt)
        self.settings = settings
        self.choices: list[Choice] = []
        self.token_times: array[float] = array("d")
        self.arrival_s = 0.0
        self.on_token: Callable[[Emitted], None] | None = None
        self.on_end: Callable[[Generation], None] | None = None
        self.output_text: OutputText | None = None
        self._rng = rng

    @property
    def output(self) -> list[int]:
        """The reply's tokens so far, an end token included."""
        return self.tokens[self.prompt_tokens :]

    @property
    def text(self) -> str:
        """The reply's text so far, up to a stop string; empty without a tokenizer."""
        return self.output_text.text if self.output_text is not None else ""

    @property
    def stop(self) -> str | None:
        """The stop string that ended it, if one did."""
        return self.output_text.stop if self.output_text is not None else None

    @property
    def done(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.status is not None

    def enter(self, now_s: float) -> None:
        """It is admitted, for the first time or again, and computes its prompt."""
        if isnan(self.admitted_s):
            self.admitted_s = now_s
        elif not isnan(self.left_s):
            self.preempted_s += now_s - self.left_s
            self.left_s = nan
        self.prefill_from_s = now_s

    def leave(self, now_s: float) -> None:
        """It is preempted."""
        self.left_s = now_s
        self._computed(now_s)

    def _computed(self, now_s: float) -> None:
        """Its prompt is computed, or it has to go in the middle of it."""
        if not isnan(self.prefill_from_s):
            self.prefill_s += now_s - self.prefill_from_s
            self.prefill_from_s = nan

    def row(self) -> Row:
        """What the sampler needs for its next token."""
        return Row(self.settings, History(self.tokens, self.prompt_tokens), self._rng)

    def take(self, choice: Choice, now_s: float, end_tokens: frozenset[int]) -> str:
        """Append a chosen token; returns the text to show for it, and sets ``finish_reason`` if it is the last."""
        self.tokens.append(choice.token)
        self.choices.append(choice)
        self.token_times.append(now_s)
        self._computed(now_s)
        if isnan(self.first_token_s):
            self.first_token_s = now_s
        ends = choice.token in end_tokens and not self.settings.ignore_end
        text = "" if ends or self.output_text is None else self.output_text.push(choice.token)
        last = ends or self.stop is not None or len(self.choices) >= self.output_tokens
        if last and self.output_text is not None:
            text += self.output_text.flush()
        if last:
            self.finish_reason = "stop" if ends or self.stop is not None else "length"
        return text


class Emitted(NamedTuple):
    """A token as it is told: ``text`` is what can be shown now, ``finish_reason`` is set with the last token."""

    generation: Generation
    choice: Choice
    text: str
    finish_reason: str | None
