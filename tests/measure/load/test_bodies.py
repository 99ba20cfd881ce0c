"""Bodies: the fields of both endpoints, as the OpenAI API reference and the engines' own documents name them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from servewise.errors import InputError, UnknownName
from servewise.measure.load.bodies import Form, api_of, parsed_extra
from servewise.measure.load.prompt import Prompt


def fields(form: Form, prompt: Prompt, output_tokens: int = 8) -> dict[str, Any]:
    """The body as an object."""
    found: dict[str, Any] = json.loads(form.body(prompt, output_tokens))
    return found


def test_a_chat_body_has_every_field_that_a_run_needs() -> None:
    """A stream with usage, greedy, of full length (OpenAI API reference, chat/completions; vLLM's ignore_eos)."""
    assert fields(Form(model="m", api="chat", seed=3), Prompt("hello")) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 8,
        "temperature": 0.0,
        "seed": 3,
        "ignore_eos": True,
    }


def test_completions_take_text_or_ids() -> None:
    """The prompt stands as it is, a text or a list of token ids."""
    form = Form(model="m", api="completions")
    assert fields(form, Prompt("hello"))["prompt"] == "hello"
    assert fields(form, Prompt((5, 6)))["prompt"] == [5, 6]


def test_messages_of_a_file_go_as_they_are() -> None:
    """All that a message has is sent, other than text too."""
    messages = ({"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "é"}]})
    assert fields(Form(model="m", api="chat"), Prompt(messages))["messages"] == list(messages)


def test_what_an_endpoint_does_not_take_is_refused() -> None:
    """Token ids in a chat and messages in a completion are one line."""
    with pytest.raises(InputError, match="completions endpoint"):
        Form(model="m", api="chat").body(Prompt((1, 2)), 1)
    with pytest.raises(InputError, match="chat endpoint"):
        Form(model="m", api="completions").body(Prompt(({"role": "user", "content": "a"},)), 1)


def test_extra_fields_replace_and_null_leaves_out() -> None:
    """OpenAI refuses ignore_eos, so that it can be left out; temperature can be another."""
    form = Form(model="m", api="chat", extra=parsed_extra('{"ignore_eos": null, "temperature": 0.7, "top_k": 1}'))
    found = fields(form, Prompt("a"))
    assert "ignore_eos" not in found
    assert (found["temperature"], found["top_k"]) == (0.7, 1)


@pytest.mark.parametrize("name", ["model", "messages", "prompt", "stream"])
def test_extra_fields_cannot_replace_the_prompt(name: str) -> None:
    """What the run itself decides is refused as an extra field."""
    with pytest.raises(InputError, match=name):
        Form(model="m", api="chat", extra={name: 1})


@pytest.mark.parametrize("text", ["", "[1]", "{", "NaN", '{"a": Infinity}', "[" * 100_000])
def test_extra_that_is_no_object_is_one_line(text: str) -> None:
    """Whatever is given, no traceback but an InputError."""
    with pytest.raises(InputError, match="extra"):
        parsed_extra(text)


def test_logprobs_as_each_endpoint_has_them() -> None:
    """A chat has logprobs and top_logprobs, a completion a number alone (OpenAI API reference)."""
    chat = fields(Form(model="m", api="chat", logprobs=5), Prompt("a"))
    assert (chat["logprobs"], chat["top_logprobs"]) == (True, 5)
    assert fields(Form(model="m", api="completions", logprobs=5), Prompt("a"))["logprobs"] == 5


def test_without_a_stream_nothing_is_said_of_streams() -> None:
    """stream_options without stream is an error in the API."""
    found = fields(Form(model="m", api="chat", streamed=False, min_tokens=True), Prompt("a"))
    assert "stream" not in found
    assert "stream_options" not in found
    assert found["min_tokens"] == 8


def test_text_that_utf8_cannot_hold_is_sent_as_escapes() -> None:
    """A lone surrogate, which JSON allows, makes a body that is ASCII and not a traceback."""
    assert rb"\ud800" in Form(model="m", api="chat").body(Prompt("\ud800"), 1)


def test_an_unknown_endpoint_offers_the_known() -> None:
    """A misspelt API names the nearest."""
    with pytest.raises(UnknownName, match="chat"):
        api_of("chats")
