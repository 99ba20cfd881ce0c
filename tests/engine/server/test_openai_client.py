"""The official client against the server: whole and streamed, alone and beside others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("openai")

import openai
from tests.engine.server.serving import BLOCK, MODEL, Running, engine_of

from servewise.engine.decoder.decoder import Decoder
from servewise.engine.running.generation import Generation
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.server.asked import Served

MESSAGES: Any = [{"role": "user", "content": "the cat sat on the mat"}]
PROMPT = "the dog ate the hat and the cat"


def directly(decoder: Decoder, served: Served, prompt: list[int], settings: SamplingSettings) -> Generation:
    """The reply of an engine without a server."""
    engine = engine_of(decoder, served)
    generation = engine.submit(prompt, settings)
    engine.run_until_idle()
    return generation


def test_chat_equals_the_engine(client: openai.OpenAI, decoder: Decoder, served: Served) -> None:
    """A greedy chat reply, its end and its usage are those of the engine run directly."""
    found = client.chat.completions.create(model=MODEL, messages=MESSAGES, temperature=0, max_tokens=12)
    alone = directly(decoder, served, served.tokenizer.chat(MESSAGES), SamplingSettings(max_tokens=12, temperature=0))

    assert found.choices[0].message.content == alone.text
    assert found.choices[0].finish_reason == alone.finish_reason
    assert found.usage is not None
    assert found.usage.prompt_tokens == alone.prompt_tokens
    assert found.usage.completion_tokens == len(alone.output)
    assert found.usage.total_tokens == alone.prompt_tokens + len(alone.output)


def test_stream_equals_whole(client: openai.OpenAI) -> None:
    """A stream's pieces join to the whole reply: one piece a token, the role in the first, the reason in the last."""
    how: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, "max_tokens": 12, "seed": 5}
    whole = client.chat.completions.create(**how)
    chunks = list(client.chat.completions.create(**how, stream=True, stream_options={"include_usage": True}))
    pieces = [chunk.choices[0] for chunk in chunks[:-1]]

    assert "".join(each.delta.content or "" for each in pieces) == whole.choices[0].message.content
    assert [each.delta.role for each in pieces] == ["assistant"] + [None] * (len(pieces) - 1)
    assert [each.finish_reason for each in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert pieces[-1].finish_reason == whole.choices[0].finish_reason
    assert whole.usage is not None
    assert len(pieces) == whole.usage.completion_tokens
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == len(pieces)
    assert len({chunk.id for chunk in chunks}) == 1


def test_usage_comes_only_where_asked_for(client: openai.OpenAI) -> None:
    """Without ``include_usage`` no chunk has usage; with ``continuous_usage_stats`` each counts one token more."""
    how: dict[str, Any] = {
        "model": MODEL,
        "prompt": PROMPT,
        "max_tokens": 4,
        "stream": True,
        "extra_body": {"ignore_eos": True},
    }
    plain = list(client.completions.create(**how))
    options: Any = {"include_usage": True, "continuous_usage_stats": True}
    counted = list(client.completions.create(**how, stream_options=options))

    assert [chunk.usage for chunk in plain] == [None] * 4
    assert [chunk.usage.completion_tokens for chunk in counted if chunk.usage] == [1, 2, 3, 4, 4]


@pytest.mark.parametrize("stream", [False, True])
def test_completion_of_text_and_of_tokens(
    client: openai.OpenAI, decoder: Decoder, served: Served, stream: bool
) -> None:
    """Text, token ids and lists of either give each prompt the engine's greedy reply, in order."""
    texts = [PROMPT, "1 2 3", "a model"]
    prompts = [served.tokenizer.prompt(text) for text in texts]
    alone = [directly(decoder, served, each, SamplingSettings(max_tokens=6, temperature=0)).text for each in prompts]

    for given, wanted in ((texts, alone), (prompts, alone), (texts[1], alone[1:2]), (prompts[2], alone[2:])):
        how: dict[str, Any] = {"model": MODEL, "prompt": given, "temperature": 0, "max_tokens": 6}
        replies = [""] * len(wanted)
        for part in client.completions.create(**how, stream=True) if stream else [client.completions.create(**how)]:
            for choice in part.choices:
                replies[choice.index] += choice.text
        assert replies == wanted


def test_eight_at_once_are_as_each_alone(running: Running, decoder: Decoder, served: Served) -> None:
    """Eight clients at once, half of them streaming, get what each would get alone."""
    texts = [f"{number} {PROMPT}" for number in range(8)]

    def ask(at: int) -> str:
        with running.client() as client:
            how: dict[str, Any] = {
                "model": MODEL,
                "prompt": texts[at],
                "temperature": 0.8,
                "seed": at,
                "max_tokens": 20,
            }
            if at % 2:
                return str(client.completions.create(**how).choices[0].text)
            return "".join(chunk.choices[0].text for chunk in client.completions.create(**how, stream=True))

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(ask, range(8)))
    for at, text in enumerate(together):
        settings = SamplingSettings(max_tokens=20, temperature=0.8, seed=at)
        assert text == directly(decoder, served, served.tokenizer.prompt(texts[at]), settings).text


def test_seed_and_n(client: openai.OpenAI) -> None:
    """Equal seeds give equal replies; of n choices the i-th has the seed plus i."""
    how: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, "max_tokens": 10, "temperature": 1.5}
    first = client.chat.completions.create(**how, n=3, seed=7)
    again = client.chat.completions.create(**how, n=3, seed=7)
    third = client.chat.completions.create(**how, seed=9)
    texts = [choice.message.content for choice in first.choices]

    assert [choice.index for choice in first.choices] == [0, 1, 2]
    assert len(set(texts)) == 3
    assert [choice.message.content for choice in again.choices] == texts
    assert third.choices[0].message.content == texts[2]
    assert first.usage is not None
    assert third.usage is not None
    assert first.usage.prompt_tokens == third.usage.prompt_tokens


def test_stop(client: openai.OpenAI) -> None:
    """A stop string ends the reply before itself, with the reason stop, whole and streamed."""
    how: dict[str, Any] = {
        "model": MODEL,
        "prompt": PROMPT,
        "temperature": 0,
        "max_tokens": 20,
        "extra_body": {"ignore_eos": True},
    }
    text = client.completions.create(**how).choices[0].text
    stop = text[4:7]
    cut = client.completions.create(**how, stop=stop).choices[0]
    pieces = [chunk.choices[0] for chunk in client.completions.create(**how, stop=["never this", stop], stream=True)]

    assert cut.text == text[: text.index(stop)]
    assert cut.finish_reason == "stop"
    assert cut.model_extra is not None
    assert cut.model_extra["stop_reason"] == stop
    assert "".join(each.text for each in pieces) == cut.text
    assert pieces[-1].finish_reason == "stop"


def test_logprobs(client: openai.OpenAI, decoder: Decoder, served: Served) -> None:
    """Log probabilities and alternatives are the engine's, in both dialects and streamed too."""
    alone = directly(
        decoder, served, served.tokenizer.prompt(PROMPT), SamplingSettings(max_tokens=4, temperature=0, logprobs=3)
    )
    how: dict[str, Any] = {"model": MODEL, "prompt": PROMPT, "temperature": 0, "max_tokens": 4, "logprobs": 3}
    whole = client.completions.create(**how).choices[0]
    chunks = [chunk.choices[0] for chunk in client.completions.create(**how, stream=True)]
    chat = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, temperature=0, max_tokens=4, logprobs=True, top_logprobs=2
    )

    assert whole.logprobs is not None
    assert whole.logprobs.token_logprobs == pytest.approx([each.logprob for each in alone.choices])
    assert [max((each or {}).values()) for each in whole.logprobs.top_logprobs or []] == pytest.approx(
        whole.logprobs.token_logprobs
    )
    lengths = [len(each) for each in whole.logprobs.tokens or []]
    assert whole.logprobs.text_offset == [sum(lengths[:at]) for at in range(4)]
    assert [(each.logprobs.tokens or [""])[0] for each in chunks if each.logprobs] == whole.logprobs.tokens
    assert [(each.logprobs.text_offset or [0])[0] for each in chunks if each.logprobs] == whole.logprobs.text_offset
    assert chat.choices[0].logprobs is not None
    for token in chat.choices[0].logprobs.content or []:
        assert len(token.top_logprobs) == 2
        assert token.top_logprobs[0].logprob == token.logprob
        assert token.logprob <= 0


def test_cached_tokens(client: openai.OpenAI, served: Served) -> None:
    """The second time a prompt comes, usage counts its full blocks as cached, at least one token left to compute."""
    prompt = [5] * 31 + served.tokenizer.prompt("first seen here")
    how: dict[str, Any] = {"model": MODEL, "prompt": prompt, "max_tokens": 1}
    counts = [client.completions.create(**how).usage for _ in range(2)]
    cached = [each.prompt_tokens_details.cached_tokens for each in counts if each and each.prompt_tokens_details]

    assert cached == [0, (len(prompt) - 1) // BLOCK * BLOCK]


def test_content_parts(client: openai.OpenAI) -> None:
    """A message whose content is one text part is the message with that text."""
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": MESSAGES[0]["content"]}]}]
    how: dict[str, Any] = {"model": MODEL, "temperature": 0, "max_tokens": 6}
    replies = [client.chat.completions.create(messages=each, **how) for each in (MESSAGES, parts)]

    assert replies[0].choices[0].message.content == replies[1].choices[0].message.content


def test_models(client: openai.OpenAI, served: Served) -> None:
    """The one model is listed and found by name, with its context."""
    listed = client.models.list().data

    assert [each.id for each in listed] == [MODEL]
    assert client.models.retrieve(MODEL).model_extra == {"max_model_len": served.context_tokens}
