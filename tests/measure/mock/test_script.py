"""Scripts: what an answer's bytes are and when they leave, without a socket."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.measure.dialect.answer import Answer
from servewise.measure.mock.answer import script_of
from servewise.measure.mock.asked import Asked, asked_of
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.heads import INTERIM
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.script import End, Script
from servewise.measure.mock.shape import SHAPES, VLLM, Shape, reshaped

PLAN = MockPlan(gap_s=0.02)


def asked(tokens: int = 8, **more: object) -> Asked:
    """A streamed chat of that many tokens."""
    body = {"model": "mock", "messages": [{"role": "user", "content": "a b"}], "max_tokens": tokens, "stream": True}
    return asked_of("chat", json.dumps(body | more).encode(), {}, PLAN)


def script(shape: Shape = VLLM, tokens: int = 8, fault: Fault | None = None) -> Script:
    """The script of such a chat."""
    return script_of(asked(tokens), PLAN, shape, first_s=0.2, cached=0, fault=fault)


def unchunked(data: bytes) -> bytes:
    """The body of a chunked answer; AssertionError where the chunks are not well formed to the end."""
    body = b""
    while True:
        size, separator, data = data.partition(b"\r\n")
        assert separator
        length = int(size, 16)
        chunk, end, data = data[:length], data[length : length + 2], data[length + 2 :]
        assert len(chunk) == length
        assert end == b"\r\n"
        if not length:
            assert not data
            return body
        body += chunk


@settings(deadline=None)
@given(per=st.integers(1, 20), tokens=st.integers(1, 60), writes=st.sampled_from(["whole", "split", "joined"]))
def test_every_token_once_and_tpot_is_the_gap(per: int, tokens: int, writes: str) -> None:
    """However many tokens an event holds, all are told, and (last - first) / (N - tokens in the first) is the gap."""
    shape = Shape(tokens_per_event=per, writes=writes)  # type: ignore[arg-type]
    sent = [each for each in script(shape, tokens).writes if each.tokens]
    assert sum(each.tokens for each in sent) == tokens
    after_first = tokens - sent[0].tokens
    if after_first and writes != "joined":
        assert (sent[-1].after_s - sent[0].after_s) / after_first == pytest.approx(PLAN.gap_s)
    if writes != "joined":
        assert sent[0].after_s == pytest.approx(0.2)


@pytest.mark.parametrize("name", [n for n, s in SHAPES.items() if "framing" not in s and "document" not in s])
def test_every_shape_is_well_formed(name: str) -> None:
    """Chunks are whole, every event is JSON or [DONE], and every word is in one of the fields that hold output."""
    made = script(reshaped(VLLM, name))
    sent = made.at_once + b"".join(each.data for each in made.writes)
    head, _, rest = sent.removeprefix(INTERIM).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    datas = [line[5:].strip() for line in unchunked(rest).splitlines() if line.startswith(b"data:")]
    words = 0
    for data in datas:
        choices = [] if data == b"[DONE]" else json.loads(data)["choices"]
        for delta in (each["delta"] for each in choices):
            calls = [each["function"]["arguments"] for each in delta.get("tool_calls", ())]
            told = (delta.get("content"), delta.get("reasoning_content"), delta.get("reasoning"), *calls)
            words += sum(len((each or "").split()) for each in told)
    assert words == 8
    assert (datas[-1] == b"[DONE]") == (name != "no-done")


def test_a_stream_of_known_length_has_it() -> None:
    """Content-Length is what comes after the head, the early role event with it."""
    made = script(Shape(framing="length", role="early"))
    head, _, body = (made.at_once + b"".join(each.data for each in made.writes)).partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head


@settings(deadline=None)  # some make 20 MiB
@given(fault=st.sampled_from(list(Fault)), tokens=st.integers(1, 9), streamed=st.booleans())
def test_no_fault_adds_tokens(fault: Fault, tokens: int, streamed: bool) -> None:
    """A spoilt answer has no more tokens than the good one, also where the good one is a single event."""
    made = script_of(asked(tokens, stream=streamed), PLAN, VLLM, first_s=0.2, cached=0, fault=fault)
    assert sum(each.tokens for each in made.writes) <= tokens


@pytest.mark.parametrize(
    ("fault", "end"),
    [(Fault.RESET, End.RESET), (Fault.CLOSE, End.CLOSE), (Fault.STALL, End.STALL), (Fault.DIE, End.DIE)],
)
def test_faults_in_the_middle_come_after_half_of_the_tokens(fault: Fault, end: End) -> None:
    """Half of the tokens are out when the connection fails."""
    made = script(fault=fault)
    assert made.end is end
    assert sum(each.tokens for each in made.writes) == 4


@pytest.mark.parametrize("name", [each for each in SHAPES if each not in ("joined", "document")])
def test_a_write_is_logged_with_the_tokens_whose_event_it_ends(name: str) -> None:
    """A client that reads write by write knows an event's tokens with the very write that is logged with them."""
    shape = reshaped(VLLM, name)
    for tokens in range(1, 40):
        wanted = asked(tokens, stream_options={"include_usage": True})
        told, answer = script_of(wanted, PLAN, shape, first_s=0.2, cached=0), Answer()
        answer.feed(told.at_once, -1.0)
        logged = []
        for place, write in enumerate(told.writes):
            answer.feed(write.data, float(place))
            logged += [float(place)] * bool(write.tokens)
        assert [each.time_s for each in answer.reading.arrivals()] == logged
