"""Stopping, readiness and liveness, as an orchestrator sees them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("openai")

from tests.engine.running.fake import FakeModel, config
from tests.engine.server.models import Slow
from tests.engine.server.raw import connection, get, post, send
from tests.engine.server.serving import BLOCK, BLOCKS, MODEL, serving, wait_until
from torch import Tensor

from servewise.batching.policies import Continuous
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.running.engine import Engine
from servewise.engine.server.asked import Served
from servewise.engine.step import KvCache, Model, StepInput

COMPLETIONS = "/v1/completions"
SHORT: dict[str, Any] = {"model": MODEL, "prompt": [5, 6, 7], "max_tokens": 2}
LONG: dict[str, Any] = SHORT | {"max_tokens": 60, "ignore_eos": True}


def engine_for(model: Model, served: Served) -> Engine:
    """An engine without a prefix cache."""
    policy = Continuous(max_sequences=4, max_batched_tokens=64)
    return Engine(model, policy, blocks=BLOCKS, block_tokens=BLOCK, tokenizer=served.tokenizer)


class Hanging:
    """A model whose steps wait for ``go``."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.go = threading.Event()

    @property
    def config(self) -> Any:
        return self._model.config

    def new_cache(self, blocks: int, block_tokens: int = 16) -> KvCache:
        return self._model.new_cache(blocks, block_tokens)

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        assert self.go.wait(60)
        return self._model.step(step, cache)


def test_a_stop_lets_the_running_end_and_takes_no_more(decoder: Decoder, served: Served) -> None:
    """While a reply runs after a stop: not ready, alive, new requests 503 with when to come again; the reply is whole.

    Both on a kept connection and on a new one: the server still listens.
    """
    engine = engine_for(Slow(decoder, 0.02), served)
    with serving(engine, served, grace_s=30) as running:
        kept = connection(running)
        kept.request("GET", "/ready")
        assert kept.getresponse().read() == b'{"status":"ready"}'
        reply = send(running, COMPLETIONS, LONG)
        wait_until(lambda: engine.running == 1)
        running.server.stop()
        kept.request("GET", "/ready")
        late = kept.getresponse()
        late.read()
        refused = send(running, COMPLETIONS, SHORT)
        answer = refused.getresponse()
        said = json.loads(answer.read())["error"]
        health = get(running, "/health")[0]
        whole = json.loads(reply.getresponse().read())
        for each in (kept, refused, reply):
            each.close()
        wait_until(lambda: running.server.should_exit)

    assert (late.status, late.headers["retry-after"]) == (503, "1")
    assert (answer.status, said["code"]) == (503, "stopping")
    assert (answer.headers["retry-after"], answer.headers["connection"]) == ("1", "close")
    assert health == 200
    assert whole["usage"]["completion_tokens"] == 60
    assert engine.pool.free == engine.pool.blocks


def test_an_idle_server_stops_at_once(served: Served) -> None:
    """With nothing to wait for, a stop does not wait for the grace."""
    with serving(engine_for(FakeModel(config(vocabulary=320)), served), served, grace_s=600) as running:
        running.server.stop()
        wait_until(lambda: running.server.should_exit)


def test_the_grace_ends(decoder: Decoder, served: Served) -> None:
    """What still streams when the grace is over is told so, in the stream, and the server ends."""
    engine = engine_for(Slow(decoder, 0.05), served)
    with serving(engine, served, grace_s=1) as running:
        reply = send(running, COMPLETIONS, LONG | {"max_tokens": 500, "stream": True})
        wait_until(lambda: engine.running == 1)
        running.server.stop()
        events = reply.getresponse().read().decode().strip().split("\n\n")
        reply.close()

    assert events[-1] == "data: [DONE]"
    assert "the server is stopping" in json.loads(events[-2].removeprefix("data: "))["error"]["message"]
    assert engine.pool.free == engine.pool.blocks


def test_who_waits_for_a_whole_answer_when_the_grace_ends_may_ask_another(decoder: Decoder, served: Served) -> None:
    """503 with Retry-After, as for those that come while it stops: nothing is wrong with the request."""
    engine = engine_for(Slow(decoder, 0.05), served)
    with serving(engine, served, grace_s=1) as running:
        reply = send(running, COMPLETIONS, LONG | {"max_tokens": 500})
        wait_until(lambda: engine.running == 1)
        running.server.stop()
        answer = reply.getresponse()
        said = json.loads(answer.read())
        reply.close()

    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert said["error"]["code"] == "stopping"


def test_a_second_signal_does_not_wait(decoder: Decoder, served: Served) -> None:
    """The first signal drains, the second ends at once, grace or no grace."""
    engine = engine_for(Slow(decoder, 0.05), served)
    with serving(engine, served, grace_s=600) as running:
        reply = send(running, COMPLETIONS, LONG | {"max_tokens": 500})
        wait_until(lambda: engine.running == 1)
        running.server.handle_exit(15, None)
        assert not running.server.should_exit
        running.server.handle_exit(15, None)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            reply.getresponse()
        reply.close()


def test_a_stuck_step_is_no_health(served: Served) -> None:
    """A step that does not come back makes health and readiness 503, an idle engine never; it recovers if it comes."""
    model = Hanging(FakeModel(config(vocabulary=320)))
    engine = engine_for(model, served)
    with serving(engine, served, stuck_s=0.2) as running, ThreadPoolExecutor(1) as threads:
        time.sleep(0.3)
        assert get(running, "/health")[0] == 200
        reply = threads.submit(post, running, COMPLETIONS, SHORT)
        wait_until(lambda: get(running, "/health")[0] == 503)
        status, text = get(running, "/ready")
        model.go.set()
        assert reply.result()[0] == 200
        wait_until(lambda: get(running, "/health")[0] == 200)

    assert status == 503
    assert "a step has run for" in json.loads(text)["error"]["message"]


def test_a_dead_thread_is_no_health(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine's thread is gone, liveness says so."""
    with serving(engine_for(FakeModel(config(vocabulary=320)), served), served) as running:
        with monkeypatch.context() as patch:
            patch.setattr(running.driver._thread, "is_alive", lambda: False)
            assert get(running, "/health")[0] == 503
            assert get(running, "/ready")[0] == 503

        assert get(running, "/health")[0] == 200
