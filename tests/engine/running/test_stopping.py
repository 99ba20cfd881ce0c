"""Stop strings and text through the engine, over a tokenizer of bytes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest.importorskip("torch")

import numpy as np
import torch
from tests.engine.running.fake import Clock, FakeModel, config
from torch import Tensor

from servewise.batching.policies import Continuous
from servewise.engine.running.engine import Engine
from servewise.engine.running.generation import Emitted
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.step import StepInput

PROMPT = [ord("?")]
END = 0


class Bytes:
    """A token is a byte; token 0 is special and has no text."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def prompt(self, text: str) -> list[int]:
        return self.encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(each for each in tokens if each != END).decode("utf-8", "replace")

    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        raise NotImplementedError


class Reciting(FakeModel):
    """A model that recites a text, then its end token, whatever the prompt of one token."""

    def __init__(self, text: str) -> None:
        super().__init__(config(vocabulary=256, end=(END,)), Clock())
        self._text = [*text.encode(), END]

    def step(self, step: StepInput, cache: object) -> Tensor:
        logits = np.zeros((len(step.rows_R), 256))
        for row, position in enumerate(step.positions_T[step.rows_R].tolist()):
            logits[row, self._text[min(position, len(self._text) - 1)]] = 1.0
        return torch.tensor(logits)


def recited(text: str, stop: tuple[str, ...] = (), tokens: int = 99) -> tuple[list[Emitted], str, str | None]:
    """The events, the whole text and the finish reason."""
    events: list[Emitted] = []
    engine = Engine(Reciting(text), Continuous(4, 64), blocks=50, tokenizer=Bytes())
    settings = SamplingSettings(max_tokens=tokens, temperature=0.0, stop=stop)
    handle = engine.submit(PROMPT, settings, on_token=events.append)
    engine.run_until_idle()

    assert "".join(each.text for each in events) == handle.text
    assert engine.pool.free == 50
    return events, handle.text, handle.finish_reason


def test_the_end_token_has_no_text() -> None:
    """The text is the recited one; the end token is the last event."""
    events, text, reason = recited("né")

    assert (text, reason) == ("né", "stop")
    assert [each.text for each in events] == ["n", "", "é", ""]
    assert events[-1].choice.token == END


def test_a_stop_string_over_several_tokens_ends_the_reply_before_it() -> None:
    """The text up to the stop, the reply's tokens up to the one that completed it."""
    events, text, reason = recited("one, two END three", (" END",))

    assert (text, reason) == ("one, two", "stop")
    assert len(events) == len("one, two END")
    assert events[-1].finish_reason == "stop"


def test_what_was_held_back_comes_with_the_last_token() -> None:
    """At ``max_tokens`` the beginning of a stop is text after all."""
    _, text, reason = recited("one, two", ("two!",), tokens=7)

    assert (text, reason) == ("one, tw", "length")


def test_a_stop_string_with_the_last_token_is_a_stop() -> None:
    """The stop completes with the token at which ``max_tokens`` is reached."""
    _, text, reason = recited("one, two", ("tw",), tokens=7)

    assert (text, reason) == ("one, ", "stop")
