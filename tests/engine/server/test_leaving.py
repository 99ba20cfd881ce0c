"""A client that leaves ends the work at once; a request that fails, fails alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("openai")

import openai
from tests.engine.running.fake import FakeModel, config
from tests.engine.server.models import Failing, Slow
from tests.engine.server.raw import get, send
from tests.engine.server.serving import BLOCK, BLOCKS, MODEL, serving, wait_until

from servewise.batching.policies import Continuous, Dynamic, Static
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.running.engine import Engine
from servewise.engine.server.asked import Served
from servewise.engine.step import Model
from servewise.records.columns import CANCELLED, COMPLETED, FAILED, UNFINISHED

LONG: dict[str, Any] = {"model": MODEL, "prompt": [5, 6, 7], "max_tokens": 500, "ignore_eos": True}
SHORT: dict[str, Any] = {"model": MODEL, "prompt": [5, 6, 7], "max_tokens": 3}


def engine_for(model: Model, served: Served, policy: Any = None) -> Engine:
    """An engine whose pool forgets, so that it is at the start again once every block is free."""
    policy = policy or Continuous(max_sequences=8, max_batched_tokens=64)
    return Engine(model, policy, blocks=BLOCKS, block_tokens=BLOCK, tokenizer=served.tokenizer)


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_frees_the_blocks(decoder: Decoder, served: Served, stream: bool) -> None:
    """A client that hangs up in the middle of a reply cancels it, long before its 500 tokens, and frees its blocks."""
    engine = engine_for(Slow(decoder, 0.01), served)
    with serving(engine, served) as running:
        connection = send(running, "/v1/completions", LONG | {"stream": stream, "n": 2})
        wait_until(lambda: len(engine.steps) > 2)
        if stream:
            with connection.getresponse() as response:
                assert response.read1()
        connection.close()
        running.until_idle()

        assert engine.pool.free == engine.pool.blocks
        assert list(engine.requests.status) == [CANCELLED] * 2
        assert max(engine.requests.output_tokens) < 400


def test_many_come_and_leave(decoder: Decoder, served: Served) -> None:
    """After 24 requests, half of which hang up at some time, every block is free and the others are complete."""
    engine = engine_for(Slow(decoder, 0.005), served)

    def ask(at: int) -> None:
        leaves = at % 2 == 0
        how = SHORT | {
            "max_tokens": 400 if leaves else 10,
            "prompt": [5] * (1 + at),
            "extra_body": {"ignore_eos": True},
        }
        with running.client() as client, client.completions.create(**how, stream=True) as stream:
            for seen, _ in enumerate(stream):
                if leaves and seen == at % 5:
                    break

    with serving(engine, served) as running:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(ask, range(24)))
        running.until_idle()

    assert engine.pool.free == engine.pool.blocks
    assert sorted(engine.requests.status) == [COMPLETED] * 12 + [CANCELLED] * 12


def test_a_request_that_fails_fails_alone(served: Served) -> None:
    """Logits that are no numbers end that request with a server error, whole or streamed; its neighbour goes on."""
    poison = 9
    engine = engine_for(FakeModel(config(vocabulary=320), poison=poison), served)
    bad: dict[str, Any] = {"model": MODEL, "prompt": [5, poison], "max_tokens": 3}
    with serving(engine, served) as running, running.client() as client:
        with ThreadPoolExecutor(1) as threads:
            beside = threads.submit(lambda: client.completions.create(**SHORT | {"max_tokens": 200}, temperature=0))
            with pytest.raises(openai.InternalServerError, match="not finite"):
                client.completions.create(**bad)
            with pytest.raises(openai.APIError, match="not finite"):
                list(client.completions.create(**bad, stream=True))
            found = beside.result()
        running.until_idle()

        assert found.usage is not None
        assert found.usage.completion_tokens == 200
        assert sorted(engine.requests.status) == [COMPLETED, FAILED, FAILED]
        assert engine.pool.free == engine.pool.blocks


def test_a_step_that_fails_once_is_tried_again(served: Served) -> None:
    """One failure of a step is not noticed by anyone."""
    model = Failing(FakeModel(config(vocabulary=320)))
    with serving(engine_for(model, served), served) as running, running.client() as client:
        wanted = client.completions.create(**SHORT, temperature=0).choices[0].text
        model.failures = 1

        assert client.completions.create(**SHORT, temperature=0).choices[0].text == wanted


def test_a_step_that_keeps_failing(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    """A step that fails twice fails its requests with what happened, logs it, and the next request is served."""
    model = Failing(FakeModel(config(vocabulary=320)))
    engine = engine_for(model, served)
    with serving(engine, served) as running, running.client() as client:
        model.failures = 2
        with pytest.raises(openai.InternalServerError, match="fell off the bus"):
            client.completions.create(**SHORT)

        assert "RuntimeError" in capfd.readouterr().err
        assert client.completions.create(**SHORT).choices[0].finish_reason == "length"
        running.until_idle()
        assert engine.pool.free == engine.pool.blocks


def test_an_engine_that_breaks(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where not even giving up works, requests before and after get a server error and health says 503: none hangs."""
    model = Failing(FakeModel(config(vocabulary=320)))
    engine = engine_for(model, served)

    def broken() -> None:
        raise AssertionError("the books do not balance")

    with serving(engine, served) as running, running.client() as client:
        monkeypatch.setattr(engine, "abandon", broken)
        model.failures = 9
        for _ in range(2):
            with pytest.raises(openai.InternalServerError, match="the books do not balance"):
                client.completions.create(**SHORT)

        assert get(running, "/health")[0] == 503
        assert "AssertionError" in capfd.readouterr().err


def test_static_and_dynamic_policies(decoder: Decoder, served: Served) -> None:
    """A static batch starts when it is full, a dynamic one after its window; both replies end."""
    for policy in (Static(2), Dynamic(2, 0.05)):
        with serving(engine_for(decoder, served, policy), served) as running, running.client() as client:
            with ThreadPoolExecutor(2) as threads:
                pair = list(threads.map(lambda _, client=client: client.completions.create(**SHORT), range(2)))
            assert [each.usage.completion_tokens for each in pair] == [3, 3]
            if isinstance(policy, Dynamic):
                assert client.completions.create(**SHORT).usage.completion_tokens == 3


@pytest.mark.parametrize(
    "policy", [Continuous(max_sequences=8, max_batched_tokens=64), Static(2)], ids=lambda p: p.name
)
def test_stopping_lets_replies_end(decoder: Decoder, served: Served, policy: Any) -> None:
    """A stop while a reply runs, or while a static batch waits for company, lets it come to its end."""
    engine = engine_for(Slow(decoder, 0.005), served, policy)
    how: dict[str, Any] = SHORT | {"max_tokens": 40, "extra_body": {"ignore_eos": True}}
    with ThreadPoolExecutor(1) as threads, serving(engine, served) as running, running.client() as client:
        reply = threads.submit(lambda: client.completions.create(**how))
        wait_until(lambda: not engine.idle)
        running.server.should_exit = True

        assert reply.result().usage.completion_tokens == 40


def test_stopping_does_not_wait_for_ever(decoder: Decoder, served: Served) -> None:
    """A reply that would go on for 25 s ends when the grace time is over, and the server with it."""
    engine = engine_for(Slow(decoder, 0.05), served)
    how: dict[str, Any] = SHORT | {"max_tokens": 500, "extra_body": {"ignore_eos": True}}
    with ThreadPoolExecutor(1) as threads, serving(engine, served, grace_s=1) as running, running.client() as client:
        reply = threads.submit(lambda: client.completions.create(**how))
        wait_until(lambda: not engine.idle)
        running.server.should_exit = True
        with pytest.raises(openai.APIError):
            reply.result()

    assert list(engine.requests.status) in ([CANCELLED], [UNFINISHED])  # whichever the engine's thread heard first
    assert engine.pool.free == engine.pool.blocks


def test_metrics_count_what_happened(decoder: Decoder, served: Served) -> None:
    """After two equal requests the counters say so, under vLLM's names; buckets add up to counts."""
    policy = Continuous(max_sequences=8, max_batched_tokens=64, prefix_cache=True)
    with serving(engine_for(decoder, served, policy), served) as running, running.client() as client:
        prompt = [5] * (BLOCK + 1)
        how: dict[str, Any] = {"model": MODEL, "prompt": prompt, "max_tokens": 4, "extra_body": {"ignore_eos": True}}
        for _ in range(2):
            client.completions.create(**how)
        running.until_idle()
        text = get(running, "/metrics")[1]
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    labels = f'{{model_name="{MODEL}",engine="0"}}'

    for name, value in (
        ("num_requests_running", 0),
        ("num_requests_waiting", 0),
        ("prompt_tokens_total", 2 * (BLOCK + 1)),
        ("generation_tokens_total", 8),
        ("num_preemptions_total", 0),
        ("prefix_cache_queries_total", 2 * (BLOCK + 1)),
        ("prefix_cache_hits_total", BLOCK),
        ("time_to_first_token_seconds_count", 2),
        ("inter_token_latency_seconds_count", 6),
        ("e2e_request_latency_seconds_count", 2),
    ):
        assert float(values[f"vllm:{name}{labels}"]) == value, name
    assert values[f'vllm:request_success_total{{{labels[1:-1]},finished_reason="length"}}'] == "2"
    assert values[f'vllm:time_to_first_token_seconds_bucket{{{labels[1:-1]},le="+Inf"}}'] == "2"
