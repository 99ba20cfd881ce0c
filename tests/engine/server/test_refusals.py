"""What is wrong is refused in OpenAI's form, with the name of what is wrong; the server goes on."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("openai")

import openai
from tests.engine.server.raw import get, post
from tests.engine.server.serving import KEY, MODEL, Running, engine_of, serving, wait_until

from servewise.engine.decoder.decoder import Decoder
from servewise.engine.server.asked import Served

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MESSAGES: Any = [{"role": "user", "content": "hello"}]
SETTINGS: list[tuple[str, Any]] = [
    ("temperature", -1),
    ("temperature", "hot"),
    ("temperature", True),
    ("temperature", 10**400),
    ("top_p", 0),
    ("top_p", float("nan")),
    ("top_k", 1.5),
    ("top_k", -2),
    ("min_p", 2),
    ("presence_penalty", 3),
    ("frequency_penalty", float("inf")),
    ("repetition_penalty", 0),
    ("seed", "x"),
    ("seed", 2**80),
    ("n", 0),
    ("n", 10**6),
    ("stop", [""]),
    ("stop", ["x"] * 17),
    ("stop", 5),
    ("stream", "yes"),
    ("ignore_eos", 1),
    ("stream_options", {"include_usage": True}),
    ("max_tokens", 0),
    ("max_tokens", 2.5),
    ("model", 3),
]


@pytest.mark.parametrize(("name", "value"), SETTINGS)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a_wrong_setting_is_named(running: Running, path: str, name: str, value: Any) -> None:
    """A setting of the wrong type or out of range gives 400 and its name as ``param``."""
    base: dict[str, Any] = {"model": MODEL, "max_tokens": 2}
    base |= {"messages": MESSAGES} if path == CHAT else {"prompt": "hello"}
    status, found = post(running, path, base | {name: value})

    assert status == 400
    assert found["error"]["type"] == "invalid_request_error"
    assert found["error"]["param"] == name
    assert name in found["error"]["message"]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("max_tokenz", 4, "unknown_parameter"),
        ("messages", MESSAGES, "unknown_parameter"),
        ("logit_bias", {"5": 1}, "unsupported_parameter"),
        ("echo", True, "unsupported_parameter"),
        ("best_of", 2, "unsupported_parameter"),
        ("best_of", True, "unsupported_parameter"),
        ("response_format", {"type": "json_object"}, "unsupported_parameter"),
        ("user", 5, "unknown_parameter"),
    ],
)
def test_what_would_be_ignored_is_refused(running: Running, name: str, value: Any, code: str) -> None:
    """An unknown setting, and one that asks for what is not there, is refused by name."""
    status, found = post(running, COMPLETIONS, {"model": MODEL, "prompt": "a", "max_tokens": 1, name: value})

    assert (status, found["error"]["param"], found["error"]["code"]) == (400, name, code)


def test_what_asks_for_nothing_is_taken(running: Running) -> None:
    """Null, and the defaults of settings that are not there, are no reason to refuse."""
    neutral = {"logit_bias": None, "echo": False, "best_of": 1, "suffix": None, "user": "me", "top_k": -1, "seed": None}
    status, _ = post(running, COMPLETIONS, {"model": MODEL, "prompt": "a", "max_tokens": 1} | neutral)

    assert status == 200


@pytest.mark.parametrize(
    "prompt", [None, 5, {}, [], [[]], "", [1, "a"], [1.5], [True], ["a", 5], [[1], ["a"]], [999_999], [-1], ["a"] * 300]
)
def test_a_prompt_that_is_none(running: Running, prompt: Any) -> None:
    """A prompt of another shape, an empty one, and tokens that the model does not know give 400."""
    status, found = post(running, COMPLETIONS, {"model": MODEL, "prompt": prompt, "max_tokens": 1})

    assert status == 400
    assert "prompt" in found["error"]["message"]


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        (None, "messages"),
        ([], "messages"),
        ("hello", "messages"),
        (["hello"], "messages[0]"),
        ([*MESSAGES, {"content": "x"}], "messages[1].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "messages[0].content"),
        ([{"role": "user", "content": "x", "tool_calls": [1]}], "messages[0].tool_calls"),
        ([{"role": "user", "content": "\ud800"}], "messages"),
    ],
)
def test_messages_that_are_none(running: Running, messages: Any, param: str) -> None:
    """Messages of another shape are refused with the place of the first wrong one."""
    status, found = post(running, CHAT, {"model": MODEL, "messages": messages, "max_tokens": 1})

    assert (status, found["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"seed": ' + b"9" * 5000 + b"}"]
)
def test_a_body_that_is_no_json(running: Running, body: bytes) -> None:
    """A body that is no JSON object is refused, however it is broken."""
    status, found = post(running, COMPLETIONS, body)

    assert (status, found["error"]["code"]) == (400, "invalid_json")


@pytest.mark.parametrize("depth", [100, 900, 960, 990])
def test_deep_values(running: Running, depth: int) -> None:
    """A value of lists in lists is refused, whether the reader or the writer of JSON tires first."""
    status, found = post(running, COMPLETIONS, b'{"model": ' + b"[" * depth + b"]" * depth + b"}")

    assert status == 400
    assert found["error"]["code"] in ("invalid_value", "invalid_json")


@pytest.mark.parametrize("body", [{"model": "\ud800"}, {"model": MODEL, "prompt": "a", "\ud800": 1}])
def test_half_a_character_is_quoted(running: Running, body: Any) -> None:
    """What a refusal quotes may be no UTF-8; it is written all the same."""
    status, found = post(running, COMPLETIONS, body)

    assert status in (400, 404)
    assert found["error"]["message"]


def test_leaving_in_the_middle_of_the_body(decoder: Decoder, served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    """A client that announces a body and hangs up leaves no trace, in the log neither."""
    with serving(engine_of(decoder, served), served) as running:
        with socket.create_connection(("127.0.0.1", urlsplit(running.url).port or 0)) as gone:
            headers = f"content-type: application/json\r\nauthorization: Bearer {KEY}\r\ncontent-length: 100"
            gone.sendall(f"POST {COMPLETIONS} HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n{{".encode())
            wait_until(lambda: running.server.server_state.tasks)
        wait_until(lambda: not running.server.server_state.tasks)

        assert get(running, "/health")[0] == 200
    assert capfd.readouterr().err == ""


def test_too_large_a_body(running: Running) -> None:
    """A body over 16 MiB is refused with 413."""
    status, found = post(running, COMPLETIONS, b" " * (17 << 20))

    assert (status, found["error"]["code"]) == (413, "body_too_large")


def test_another_content_type(running: Running) -> None:
    """A page of another origin can post only simple content types without asking: they are refused."""
    status, _ = post(running, COMPLETIONS, {"model": MODEL, "prompt": "a"}, kind="text/plain")

    assert status == 415


def test_unknown_model(client: openai.OpenAI) -> None:
    """Another model's name gives 404 and OpenAI's code, from the generating endpoints and from retrieval."""
    with pytest.raises(openai.NotFoundError) as asked:
        client.completions.create(model="gpt-4o", prompt="a")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("org/gpt-4o")

    assert asked.value.code == "model_not_found"
    assert MODEL in asked.value.message


@pytest.mark.parametrize(("tokens", "limit"), [(512, 1), (600, 1), (500, 13), (1, 512)])
def test_beyond_the_context(client: openai.OpenAI, tokens: int, limit: int) -> None:
    """A prompt, or a prompt and its ``max_tokens``, beyond the context of 512 give OpenAI's code."""
    with pytest.raises(openai.BadRequestError) as asked:
        client.completions.create(model=MODEL, prompt=[5] * tokens, max_tokens=limit)

    assert asked.value.code == "context_length_exceeded"
    assert "512" in asked.value.message
    assert str(tokens) in asked.value.message


def test_a_reply_ends_with_the_context(client: openai.OpenAI) -> None:
    """A chat without ``max_tokens`` may fill the context and no more."""
    long: Any = [{"role": "user", "content": "1 " * 230}]
    found = client.chat.completions.create(model=MODEL, messages=long, temperature=0, extra_body={"ignore_eos": True})

    assert found.choices[0].finish_reason == "length"
    assert found.usage is not None
    assert found.usage.total_tokens == 512


def test_wrong_key(running: Running) -> None:
    """A wrong key, and none, give 401 under /v1; health and metrics are open."""
    with running.client(key="sk-wrong") as client, pytest.raises(openai.AuthenticationError):
        client.models.list()
    status, found = post(running, COMPLETIONS, {"model": MODEL, "prompt": "a"}, key="")

    assert (status, found["error"]["type"]) == (401, "authentication_error")
    assert get(running, "/health")[0] == 200
    assert get(running, "/metrics")[0] == 200


@pytest.mark.parametrize(("path", "status"), [("/v1/nothing", 404), ("/", 404), (COMPLETIONS, 405)])
def test_no_such_route(running: Running, path: str, status: int) -> None:
    """Unknown paths and methods are refused in the same form."""
    found, text = get(running, path)

    assert found == status
    assert json.loads(text)["error"]["message"]


def test_none_of_it_was_left_behind(running: Running) -> None:
    """After all refusals above nothing runs or waits, and every block is available."""
    running.until_idle()

    assert running.engine.pool.available == running.engine.pool.blocks
