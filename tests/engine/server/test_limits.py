"""Too much, too slow, too many: each is refused in OpenAI's form or ended, and nothing of it is left behind."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("openai")

from tests.engine.running.fake import FakeModel, config
from tests.engine.server.models import Slow
from tests.engine.server.raw import connection, get, post, send
from tests.engine.server.serving import BLOCK, BLOCKS, BOUND_S, KEY, MODEL, Running, serving, wait_until

from servewise.batching.policies import Continuous
from servewise.engine.checkpoints.tokenizer import TextTokenizer
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.running.engine import Engine
from servewise.engine.server.asked import Served
from servewise.engine.server.door import Door
from servewise.engine.server.fault import Fault
from servewise.engine.server.limits import Limits, RequestLimits, body_bytes_for
from servewise.engine.server.protocol import GuardedProtocol
from servewise.engine.step import Model
from servewise.errors import InputError
from servewise.records.columns import CANCELLED

COMPLETIONS = "/v1/completions"
LONG: dict[str, Any] = {"model": MODEL, "prompt": [5, 6, 7], "max_tokens": 500, "ignore_eos": True}
SHORT: dict[str, Any] = {"model": MODEL, "prompt": [5, 6, 7], "max_tokens": 2}


def engine_for(model: Model, served: Served, slots: int = 2) -> Engine:
    """An engine of few slots, without a prefix cache."""
    policy = Continuous(max_sequences=slots, max_batched_tokens=64)
    return Engine(model, policy, blocks=BLOCKS, block_tokens=BLOCK, tokenizer=served.tokenizer)


def fake(served: Served) -> Engine:
    """One that answers at once."""
    return engine_for(FakeModel(config(vocabulary=served.vocabulary)), served)


def dialled(running: Running) -> socket.socket:
    """A bare connection."""
    return socket.create_connection(("127.0.0.1", urlsplit(running.url).port or 0), timeout=BOUND_S)


def all_of(plug: socket.socket) -> bytes:
    """What comes until the server closes; a reset counts as the end."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := plug.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def head_of(length: int, path: str = COMPLETIONS) -> bytes:
    """The head of a request with a body of ``length``."""
    lines = f"content-type: application/json\r\nauthorization: Bearer {KEY}\r\ncontent-length: {length}"
    return f"POST {path} HTTP/1.1\r\nhost: x\r\n{lines}\r\n\r\n".encode()


def test_a_full_server_says_when_to_come_again(decoder: Decoder, served: Served) -> None:
    """Of slots and queue all taken, the next is refused with 429 and Retry-After; one that leaves makes room."""
    engine = engine_for(Slow(decoder, 0.01), served, slots=1)
    with serving(engine, served, limits=Limits(queued=1)) as running:
        first, second = (send(running, COMPLETIONS, LONG) for _ in range(2))
        wait_until(lambda: engine.running == 1 and engine.waiting == 1)
        refused = send(running, COMPLETIONS, SHORT)
        answer = refused.getresponse()
        said = json.loads(answer.read())["error"]
        ready, page = get(running, "/ready")[0], get(running, "/metrics")[1]
        second.close()
        wait_until(lambda: engine.waiting == 0)
        first.close()
        running.until_idle()
        status, _ = post(running, COMPLETIONS, SHORT)
        refused.close()

    assert (answer.status, said["code"], said["type"]) == (429, "overloaded", "rate_limit_error")
    assert int(answer.headers["retry-after"]) >= 1
    assert ready == 200  # it works; it is only full
    assert 'servewise:turned_away_total{model_name="tiny",engine="0",reason="overloaded"} 1' in page
    assert status == 200
    assert engine.pool.free == engine.pool.blocks


def test_choices_count_not_requests(served: Served) -> None:
    """A request of more choices than the server ever holds is wrong (400), not early (429)."""
    with serving(fake(served), served, limits=Limits(queued=1)) as running:
        assert post(running, COMPLETIONS, SHORT | {"n": 3})[0] == 200
        status, found = post(running, COMPLETIONS, SHORT | {"n": 4})

    assert (status, found["error"]["param"]) == (400, "n")


def test_when_to_come_again_follows_the_rate() -> None:
    """At one departure a second, whoever waits for three must wait three seconds; unknown rates say five."""
    now = [0.0]
    door = Door(4, clock=lambda: now[0])
    assert door.wait_s(1) == 5
    for _ in range(10):
        with door.entered(1):
            now[0] += 1.0
    assert door.wait_s(3) == 3  # ten departures over nine seconds and the one since: 3 * 9 / 10, up

    now[0] += 120.0
    assert door.wait_s(1) == 5


def test_the_door_counts() -> None:
    """Inside is what entered and has not left, however it left; closed, nobody enters."""
    door = Door(3)
    with door.entered(2):
        assert door.inside == 2
        with pytest.raises(Fault) as full:
            door.check(2)
        with contextlib.suppress(KeyError), door.entered(1):
            raise KeyError
    assert full.value.status == 429
    assert door.inside == 0
    door.close()
    with pytest.raises(Fault) as closed:
        door.check()

    assert closed.value.status == 503
    assert closed.value.headers == {"retry-after": "1", "connection": "close"}
    assert door.turned_away == {"overloaded": 1, "stopping": 1}


@pytest.mark.parametrize(
    ("limits", "body", "param"),
    [
        (RequestLimits(prompt_tokens=4), {"prompt": [5] * 5}, "prompt"),
        (RequestLimits(output_tokens=3), {"max_tokens": 4}, "max_tokens"),
        (RequestLimits(choices=2), {"n": 3}, "n"),
        (RequestLimits(choices=2), {"prompt": ["a", "b", "c"]}, "prompt"),
        (RequestLimits(stops=1), {"stop": ["a", "b"]}, "stop"),
        (RequestLimits(stop_characters=2), {"stop": "abc"}, "stop"),
    ],
)
def test_a_request_beyond_the_operators_limits(
    served: Served, limits: RequestLimits, body: dict[str, Any], param: str
) -> None:
    """Each limit of a request is held, and named where it is passed."""
    with serving(fake(served), replace(served, limits=limits)) as running:
        status, found = post(running, COMPLETIONS, SHORT | body)

    assert (status, found["error"]["param"]) == (400, param)


def test_a_limit_of_the_output_is_the_default_too(served: Served) -> None:
    """Without max_tokens a chat ends at the operator's limit."""
    limited = replace(served, limits=RequestLimits(output_tokens=3))
    messages = [{"role": "user", "content": "x"}]
    with serving(fake(served), limited) as running:
        _, found = post(running, "/v1/chat/completions", {"model": MODEL, "messages": messages, "ignore_eos": True})

    assert found["usage"]["completion_tokens"] == 3


def test_a_text_too_long_is_not_cut_into_tokens(served: Served) -> None:
    """What cannot fit by its length alone is refused before the tokenizer sees it."""

    class Untouched:
        def prompt(self, text: str) -> list[int]:
            raise AssertionError("it was tokenised")

    told = replace(served, tokenizer=cast(Any, Untouched()), token_bytes=10)
    with serving(fake(served), told) as running:
        status, found = post(running, COMPLETIONS, SHORT | {"prompt": "a" * 5121})

    assert (status, found["error"]["code"]) == (400, "context_length_exceeded")


def test_a_tokens_longest_text(served: Served) -> None:
    """No text is cut into fewer tokens than its length over the longest token's: the bound above is true."""
    tokenizer = served.tokenizer
    assert isinstance(tokenizer, TextTokenizer)
    longest = tokenizer.longest_token
    for text in ("the cat sat on the mat", "x" * 50, " " * 50, "a model that is served well answers at once" * 3):
        assert len(text) <= longest * len(tokenizer.encode(text))


def test_bodies_have_a_size_and_a_time(served: Served) -> None:
    """Over the size: 413, whether announced or not; too slow: 408; the server goes on."""
    with serving(fake(served), served, limits=Limits(body_bytes=1000, body_s=0.3)) as running:
        announced = post(running, COMPLETIONS, b" " * 1001)
        with dialled(running) as plug:
            head = head_of(0).replace(b"content-length: 0", b"transfer-encoding: chunked")
            plug.sendall(head + b"400\r\n" + b" " * 1024 + b"\r\n0\r\n\r\n")
            unannounced = plug.recv(100)
        with dialled(running) as plug:
            plug.sendall(head_of(10) + b"{")
            slow = all_of(plug)
        after, _ = post(running, COMPLETIONS, SHORT)

    assert (announced[0], announced[1]["error"]["code"]) == (413, "body_too_large")
    assert unannounced.startswith(b"HTTP/1.1 413 ")
    assert slow.startswith(b"HTTP/1.1 408 ")
    assert b'"code": "timeout"' in slow
    assert after == 200


def test_all_bodies_together_have_a_size(served: Served) -> None:
    """Bodies that fit alone are refused with 429 where too many are being read; when those are gone, they fit."""
    with serving(fake(served), served, limits=Limits(body_bytes=4000, bodies_bytes=5000)) as running:
        with dialled(running) as first:
            first.sendall(head_of(4000) + b" " * 3000)
            wait_until(lambda: _held(running) == 3000)
            refused, _ = post(running, COMPLETIONS, b" " * 3000)
        wait_until(lambda: _held(running) == 0)

        assert refused == 429
        assert post(running, COMPLETIONS, SHORT)[0] == 200


def _held(running: Running) -> int:
    return running.server.api.bodies.held


@pytest.mark.parametrize("sent", [b"GET /health HTTP/1.1\r\nhost: x\r\nx-", b"G"])
def test_a_head_that_does_not_end(served: Served, sent: bytes) -> None:
    """Slow loris: a head in pieces, a byte now and then, is ended in time all the same."""
    with serving(fake(served), served, limits=Limits(head_s=0.3)) as running, dialled(running) as plug:
        plug.sendall(sent)
        time.sleep(0.1)
        with contextlib.suppress(ConnectionError):
            plug.sendall(b"a")
        answer = all_of(plug)

    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_head_that_is_too_long(served: Served) -> None:
    """Headers beyond the limit give 431 in OpenAI's form."""
    with serving(fake(served), served, limits=Limits(header_bytes=2000)) as running, dialled(running) as plug:
        plug.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 3000)
        answer = all_of(plug)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert json.loads(body)["error"]["code"] == "invalid_http"


def test_a_head_that_is_too_long_in_one_piece(served: Served) -> None:
    """A head beyond the limit is refused also where it comes whole at once, and one below it is not."""
    found = []
    for size in (1500, 2000):
        with serving(fake(served), served, limits=Limits(header_bytes=2000)) as running, dialled(running) as plug:
            plug.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: " + b"a" * size + b"\r\n\r\n")
            found.append(all_of(plug)[:13])

    assert found == [b"HTTP/1.1 200 ", b"HTTP/1.1 431 "]


@pytest.mark.parametrize("order", [1, -1])
def test_a_body_of_two_lengths_is_refused(served: Served, order: int) -> None:
    """Content-Length beside chunks: 400, and nothing behind it is taken for a request."""
    lengths = [b"content-length: 3\r\n", b"transfer-encoding: chunked\r\n"][::order]
    behind = b"2\r\n{}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\n\r\n"
    with serving(fake(served), served) as running, dialled(running) as plug:
        plug.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n" + b"".join(lengths) + b"\r\n" + behind)
        answer = all_of(plug)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_silent_connection_is_closed(served: Served) -> None:
    """Connected and never a word: closed after the idle time."""
    with serving(fake(served), served, limits=Limits(idle_s=0.5)) as running, dialled(running) as plug:
        assert all_of(plug) == b""


def test_too_many_connections(served: Served) -> None:
    """Beyond the limit silent connections make room, so that health is still told; busy ones do not: 503."""
    with serving(fake(served), served, limits=Limits(connections=3)) as running, contextlib.ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(dialled(running))
        assert get(running, "/health")[0] == 200
        for _ in range(3):
            stack.enter_context(dialled(running)).sendall(head_of(10) + b"{")
        wait_until(lambda: len(running.server.server_state.tasks) == 3)
        refused = all_of(stack.enter_context(dialled(running)))

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in refused


def test_a_reader_that_does_not_read(served: Served, decoder: Decoder) -> None:
    """It stalls nobody; when it is too far behind its stream is ended and its blocks are free; both ways to notice."""
    for limits, how in ((Limits(unread_tokens=20), "behind"), (Limits(stalled_s=0.5), "stalled")):
        engine = engine_for(Slow(decoder, 0.002), served)
        with serving(engine, served, limits=limits, send_buffer_bytes=4096) as running:
            plug = socket.socket()
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            plug.connect(("127.0.0.1", urlsplit(running.url).port or 0))
            plug.settimeout(BOUND_S)
            body = json.dumps(LONG | {"stream": True, "logprobs": 20}).encode()
            plug.sendall(head_of(len(body)) + body)
            wait_until(lambda engine=engine: engine.running)
            beside = post(running, COMPLETIONS, SHORT | {"max_tokens": 30})[0]
            running.until_idle()
            got = all_of(plug)
            plug.close()

            assert running.server.api.watched.counts[how] == 1
            assert beside == 200
            assert b"[DONE]" not in got
            assert CANCELLED in list(engine.requests.status)
            assert engine.pool.free == engine.pool.blocks


@pytest.mark.parametrize("where", ["queued", "prefill", "decode"])
@pytest.mark.parametrize("stream", [False, True])
def test_leaving_wherever_it_is(served: Served, decoder: Decoder, where: str, stream: bool) -> None:
    """A client that hangs up while its request waits, computes its prompt or decodes leaves nothing behind."""
    engine = engine_for(Slow(decoder, 0.02), served, slots=1)
    with serving(engine, served) as running:
        first = send(running, COMPLETIONS, LONG) if where == "queued" else None
        wait_until(lambda: first is None or engine.running == 1)
        prompt = [5] * (400 if where == "prefill" else 3)
        body = LONG | {"prompt": prompt, "stream": stream, "max_tokens": 90}
        leaving = send(running, COMPLETIONS, body)
        wait_until(lambda: engine.waiting if where == "queued" else engine.running)
        wait_until(lambda: where != "decode" or len(engine.steps) > 3)
        leaving.close()
        wait_until(lambda: len(engine.requests.status) == 1)
        if first is not None:
            first.close()
        running.until_idle()

    assert set(engine.requests.status) == {CANCELLED}
    assert engine.pool.free == engine.pool.blocks


def test_pipelined_requests_are_answered_in_order(served: Served) -> None:
    """Two requests in one packet, then nonsense: two answers, then an error, then the end."""
    body = json.dumps(SHORT).encode()
    one = head_of(len(body)) + body
    with serving(fake(served), served) as running, dialled(running) as plug:
        plug.sendall(one + one + b"\x00\x01\r\n\r\n")
        answer = all_of(plug)

    assert answer.count(b"HTTP/1.1 200 ") == 2
    assert answer.count(b"HTTP/1.1 400 ") == 1
    assert b'"code": "invalid_http"' in answer


def test_another_hosts_name_is_refused(served: Served) -> None:
    """Without a key, a page of the web that names this address its own (DNS rebinding) reaches nothing under /v1."""
    names = frozenset({"localhost", "127.0.0.1", "::1"})
    with serving(fake(served), served, keys=(), hosts=names) as running:
        found = connection(running)
        for host, status in (
            ("evil.example:80", 403),
            ("localhost:1", 200),
            ("localhost:1@evil.example", 403),
            ("[::1]x", 403),
            ("[::1]:80", 200),
            ("127.0.0.1", 200),
        ):
            found.putrequest("GET", "/v1/models", skip_host=True)
            found.putheader("host", host)
            found.endheaders()
            response = found.getresponse()
            response.read()
            assert response.status == status, host
        found.close()


def test_either_key_will_do(served: Served) -> None:
    """With two keys each is taken, so that one can be changed while the other works; others are not."""
    with serving(fake(served), served, keys=("sk-old", "sk-new")) as running:
        found = [post(running, COMPLETIONS, SHORT, key=key)[0] for key in ("sk-old", "sk-new", "sk-ol", "sk-old ", "")]

    assert found == [200, 200, 401, 200, 401]


def test_limits_that_make_no_sense() -> None:
    """A limit of nothing is refused by name; a queue of none is possible."""
    assert Limits(queued=0).queued == 0
    for name in ("connections", "body_s", "head_s", "stalled_s", "unread_tokens"):
        with pytest.raises(InputError, match=name.replace("_", " ")):
            Limits(**{name: 0})
    with pytest.raises(InputError):
        Limits(head_s=float("nan"))


def test_a_body_that_any_prompt_fits_into() -> None:
    """8k tokens of context: 2 MiB; never below 1 MiB, never above 64."""
    assert [body_bytes_for(tokens) for tokens in (1, 8192, 10**7)] == [1 << 20, 2 << 20, 64 << 20]


def test_many_at_once_are_all_answered(served: Served) -> None:
    """Sixty at once against room for six: each is answered or told to come again, and none of them hangs."""
    engine = fake(served)
    with serving(engine, served, limits=Limits(queued=4)) as running:
        with ThreadPoolExecutor(12) as threads:
            found = list(threads.map(lambda _: post(running, COMPLETIONS, SHORT)[0], range(60)))
        running.until_idle()

    assert set(found) <= {200, 429}
    assert found.count(200) >= 6
    assert engine.pool.free == engine.pool.blocks


def test_a_connection_leaves_no_garbage(served: Served) -> None:
    """With the collector off, nothing of a connection stays when it is gone: memory is flat without collections."""
    with serving(fake(served), served) as running:
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                assert post(running, COMPLETIONS, SHORT)[0] == 200
            with dialled(running) as plug:
                plug.sendall(head_of(10) + b"{")
            wait_until(lambda: not running.server.server_state.connections)
            wait_until(lambda: not any(type(each) is GuardedProtocol for each in gc.get_objects()))
        finally:
            gc.enable()
