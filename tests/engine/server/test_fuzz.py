"""Fuzz: requests drawn from the server's own OpenAPI document, valid and not, and bytes that are no request at all."""

from __future__ import annotations

import contextlib
import json
import random
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("openai")
pytest.importorskip("schemathesis")

import jsonschema_rs
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.running.fake import FakeModel, config
from tests.engine.server.raw import get, send
from tests.engine.server.serving import BLOCK, BLOCKS, BOUND_S, KEY, MODEL, Running, serving

from servewise.batching.policies import Continuous
from servewise.engine.running.engine import Engine
from servewise.engine.server.asked import Served, asked_chat, asked_completion
from servewise.engine.server.fields import LABELS, NEUTRAL, Fields
from servewise.engine.server.limits import Limits, RequestLimits
from servewise.engine.server.openapi import openapi

PATHS = ("/v1/chat/completions", "/v1/completions")
FUZZED = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
GET = "/health", "/ready", "/metrics", "/version", "/openapi.json", "/v1/models"
CHOICES = 8


@pytest.fixture(scope="module")
def short(served: Served) -> Served:
    """The model with short replies: a fuzz asks for many."""
    return replace(served, limits=RequestLimits(output_tokens=6, choices=CHOICES))


@pytest.fixture(scope="module")
def fuzzed(served: Served, short: Served) -> Iterator[Running]:
    """A server that answers at once; no request may wait, and none may be left."""
    policy = Continuous(max_sequences=300, max_batched_tokens=512)
    model = FakeModel(config(vocabulary=served.vocabulary))
    engine = Engine(model, policy, blocks=BLOCKS, block_tokens=BLOCK, tokenizer=served.tokenizer)
    with serving(engine, short, limits=Limits(head_s=0.5, body_s=0.5, idle_s=5.0)) as running:
        yield running
        running.until_idle()
        assert engine.pool.free == engine.pool.blocks


@pytest.mark.slow
def test_the_document_is_one(fuzzed: Running) -> None:
    """What /openapi.json gives is an OpenAPI 3.1 document, and holds every route that answers."""
    document = json.loads(get(fuzzed, "/openapi.json")[1])

    schemathesis.openapi.from_dict(document).validate()
    for path in GET:
        assert get(fuzzed, path)[0] in ({200, 401} if path.startswith("/v1") else {200})
    assert set(document["paths"]) == {*GET, *PATHS, "/v1/models/{name}"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("path", PATHS)
def test_what_the_document_allows_is_what_is_taken(fuzzed: Running, short: Served, path: str, mode: str) -> None:
    """A body is answered exactly where the document allows it, unless it is too long for the context, or asks
    for more answers than the limit by prompts times n.

    Whether it does is asked of a JSON Schema validator. No answer is a 5xx, and every refusal has OpenAI's form.
    """
    validator = jsonschema_rs.validator_for(_schema(short, path))
    operation = schemathesis.openapi.from_dict(openapi(short, keyed=True))[path]["POST"]
    found = set()

    @FUZZED
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def each(case: Any) -> None:
        given_body = json.loads(json.dumps(case.body, default=str))
        status, answer = _told(fuzzed, path, given_body)
        found.add(status)
        if status == 200:
            assert validator.is_valid(given_body), given_body
            assert b'"error"' not in answer, answer
        else:
            error = json.loads(answer)["error"]
            assert status in (400, 404), answer
            assert set(error) == {"message", "type", "param", "code"}
            if validator.is_valid(given_body):
                beyond = error["code"] == "context_length_exceeded" or _choices(given_body) > CHOICES
                assert beyond, (given_body, error)

    each()
    assert 200 in found or mode == "negative"
    assert 400 in found or mode == "positive"


def _schema(served: Served, path: str) -> dict[str, Any]:
    document = openapi(served, keyed=True)
    found: dict[str, Any] = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return found


def _edges(schema: dict[str, Any]) -> list[Any]:
    """Values of every type, and those at, within and beyond each bound."""
    found: list[Any] = [None, True, False, 0, 1, 2.0, 0.5, -1, "x", "", [], {}, ["text"], "none", {"type": "text"}]
    for name in ("minimum", "maximum", "exclusiveMinimum"):
        if name in schema:
            found += [schema[name] + more for more in (-1, 0, 1)]
    return found


@pytest.mark.parametrize("path", PATHS)
def test_each_field_at_its_bounds(fuzzed: Running, short: Served, path: str) -> None:
    """For every field, values at and beyond its bounds and of every type: taken exactly where the document allows."""
    schema = _schema(short, path)
    validator = jsonschema_rs.validator_for(schema)
    base: dict[str, Any] = {"model": MODEL, "max_tokens": 1}
    base |= {"messages": [{"role": "user", "content": "a"}]} if "chat" in path else {"prompt": "a"}
    for name, field in schema["properties"].items():
        for value in _edges(field):
            body = base | {name: value}
            status, answer = _told(fuzzed, path, body)

            assert status in (200, 400, 404), (body, answer)
            assert (status == 200) == validator.is_valid(body), (body, answer)


@pytest.mark.parametrize("path", PATHS)
def test_the_document_has_every_field_that_is_read(short: Served, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document's fields are those that the reader asks for, and those that it knows to mean nothing."""
    asked: set[str] = set()
    take = Fields.take

    def noting(fields: Fields, name: str) -> Any:
        asked.update({name} if fields._where == "" else ())
        return take(fields, name)

    monkeypatch.setattr(Fields, "take", noting)
    chat = {"model": MODEL, "messages": [{"role": "user", "content": "a"}]}
    if "chat" in path:
        asked_chat(chat, short)
    else:
        asked_completion({"model": MODEL, "prompt": "a"}, short)

    assert set(_schema(short, path)["properties"]) == asked | LABELS | set(NEUTRAL)


def _choices(body: Any) -> int:
    """Prompts times ``n``, a product that a schema cannot bound."""
    prompts = body.get("prompt")
    several = isinstance(prompts, list) and prompts and not isinstance(prompts[0], (int, float))
    return (len(prompts) if several else 1) * int(body.get("n") or 1)


def _told(running: Running, path: str, body: object) -> tuple[int, bytes]:
    """Status and text of the answer to the body, streamed or not."""
    with contextlib.closing(send(running, path, json.dumps(body).encode())) as sent:
        response = sent.getresponse()
        return response.status, response.read()


def _plug(running: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(running.url).port or 0), timeout=BOUND_S)


def _answer(running: Running, sent: bytes) -> bytes:
    """What the server says to ``sent`` until it closes; it must within the bound."""
    with _plug(running) as plug, contextlib.suppress(ConnectionError):
        plug.sendall(sent)
        plug.shutdown(socket.SHUT_WR)
        parts = []
        while part := plug.recv(1 << 16):
            parts.append(part)
        return b"".join(parts)
    return b""


def _whole_request() -> bytes:
    body = json.dumps({"model": MODEL, "prompt": [5, 6], "max_tokens": 2, "stream": True}).encode()
    lines = f"host: x\r\ncontent-type: application/json\r\nauthorization: Bearer {KEY}\r\ncontent-length: {len(body)}"
    return f"POST /v1/completions HTTP/1.1\r\n{lines}\r\n\r\n".encode() + body


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A request in which bytes are changed, left out, doubled, or cut off."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    data = bytearray(_whole_request())
    for _ in range(draw(st.integers(1, 6))):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(5)
        if how == 0:
            data[at : at + 1] = rng.randbytes(1)
        elif how == 1:
            del data[at : at + rng.randrange(1, 20)]
        elif how == 2:
            data[at:at] = data[at : at + rng.randrange(1, 60)]
        elif how == 3:
            data[at:at] = rng.choice((b"\r\n", b"\x00", b"\r\n\r\n", b"transfer-encoding: chunked\r\n", b"\xff" * 9))
        else:
            del data[at:]
        if not data:
            break
    return bytes(data)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(sent=st.one_of(st.binary(min_size=1, max_size=300), damaged()))
def test_bytes_that_are_no_request(fuzzed: Running, sent: bytes) -> None:
    """Whatever comes over the socket: an answer that is no 5xx, or a closed connection, and the server goes on."""
    answer = _answer(fuzzed, sent)

    if answer:
        assert answer.startswith(b"HTTP/1.1 "), answer[:80]
        assert answer[9:10] in b"24", answer[:80]
        if answer[9:10] == b"4" and b"application/json" in answer:
            assert "message" in json.loads(answer.split(b"\r\n\r\n", 1)[1].split(b"HTTP/1.1")[0])["error"]
    assert get(fuzzed, "/health")[0] == 200


def test_the_fuzz_left_nothing_in_the_log(fuzzed: Running, capfd: pytest.CaptureFixture[str]) -> None:
    """Nonsense is counted, not logged: nobody can fill a disk with it."""
    _answer(fuzzed, b"\x00\x01\x02\r\n\r\n")

    assert capfd.readouterr().err == ""
    assert 'reason="invalid"' in get(fuzzed, "/metrics")[1]
