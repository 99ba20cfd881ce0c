"""Whole answers, cut anywhere."""

from __future__ import annotations

import json
from itertools import pairwise
from math import isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measure.dialect.samples import BAD, GOOD, VLLM, Sample

from servewise.measure.dialect.answer import Answer, Ending
from servewise.measure.outcome import Outcome

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def framed_by_length(body: bytes) -> bytes:
    """The answer with its length in the head."""
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def framed_by_chunks(body: bytes, size: int = 100) -> bytes:
    """The answer in chunks, with a trailer."""
    chunks = [body[i : i + size] for i in range(0, len(body), size)]
    coded = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in chunks)
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + coded + b"0\r\nX-Took: 1\r\n\r\n"


def framed_by_close(body: bytes) -> bytes:
    """The answer that ends with its connection."""
    return HEAD + b"Connection: close\r\n\r\n" + body


FRAMINGS = (framed_by_length, framed_by_chunks, framed_by_close)


def read(data: bytes, cuts: tuple[int, ...] = (), ending: Ending = Ending.CLOSED) -> tuple[Answer, Outcome, str]:
    """Read ``data`` cut at ``cuts``, the nth piece at n seconds, then the end."""
    answer = Answer(keep_text=True, keep_logprobs=True)
    for second, (start, end) in enumerate(pairwise([0, *cuts, len(data)])):
        if answer.over:
            break
        answer.feed(data[start:end], float(second))
    outcome, reason = answer.verdict(ending)
    answer.http.release()
    return answer, outcome, reason


@pytest.mark.parametrize("frame", FRAMINGS)
@pytest.mark.parametrize("sample", GOOD, ids=lambda sample: sample.name)
def test_what_servers_send_is_read_as_they_mean_it(sample: Sample, frame: object) -> None:
    """Output, tokens by event, counts, text and the end's reason come out of each server's own bytes."""
    assert callable(frame)
    answer, outcome, reason = read(frame(sample.body))
    reading = answer.reading
    assert (outcome, reason) == (sample.outcome, "")
    assert tuple(each.tokens for each in reading.arrivals()) == sample.tokens
    assert tuple(each.reasoning for each in reading.arrivals()) == sample.reasoning
    assert "".join(reading.texts) == sample.text
    assert tuple(reading.usage) == sample.counts
    assert (reading.finish_reason, reading.events) == (sample.finish, sample.events)


@pytest.mark.parametrize("frame", FRAMINGS)
@pytest.mark.parametrize(("name", "body", "outcome"), BAD, ids=[each[0] for each in BAD])
def test_no_failure_is_a_success(name: str, body: bytes, outcome: Outcome, frame: object) -> None:
    """Errors inside a 200, damage, emptiness and cuts each have their own outcome, and one line that says why."""
    assert callable(frame)
    _, found, reason = read(frame(body))
    assert found is outcome
    assert reason.isprintable()
    assert reason
    if outcome in (Outcome.ERROR_IN_STREAM, Outcome.ERROR_IN_BODY) and "dropped" not in name:
        assert "boom" in reason


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (301, Outcome.REDIRECTED),
        (307, Outcome.REDIRECTED),
        (400, Outcome.CLIENT_ERROR),
        (401, Outcome.UNAUTHORISED),
        (403, Outcome.UNAUTHORISED),
        (404, Outcome.NOT_FOUND),
        (422, Outcome.CLIENT_ERROR),
        (429, Outcome.RATE_LIMITED),
        (500, Outcome.SERVER_ERROR),
        (503, Outcome.SERVER_ERROR),
        (999, Outcome.PROTOCOL),
    ],
)
def test_each_status_has_its_outcome(status: int, outcome: Outcome) -> None:
    """A status that is not 2xx decides, whatever the body holds, and the server's message is in the reason."""
    body = b'{"error": {"message": "the model `x` does not exist"}}'
    head = b"HTTP/1.1 %d Oh\r\nRetry-After: 3\r\nLocation: http://else/\r\nContent-Length: %d\r\n\r\n"
    answer, found, reason = read(head % (status, len(body)) + body)
    assert found is outcome
    assert reason.startswith(str(status))
    assert ("http://else/" if outcome is Outcome.REDIRECTED else "does not exist") in reason
    assert answer.retry_after_s() == 3.0


@pytest.mark.parametrize(
    ("data", "ending", "outcome"),
    [
        (b"", Ending.CLOSED, Outcome.RESET),
        (b"HTTP/1.1 200", Ending.CLOSED, Outcome.RESET),
        (b"HTTP/1.1 200", Ending.RESET, Outcome.RESET),
        (framed_by_length(VLLM.body)[:-300], Ending.CLOSED, Outcome.TRUNCATED),
        (framed_by_length(VLLM.body)[:-300], Ending.RESET, Outcome.RESET),
        (framed_by_chunks(VLLM.body)[:-300], Ending.CLOSED, Outcome.TRUNCATED),
        (framed_by_chunks(VLLM.body)[:-300], Ending.RESET, Outcome.RESET),
        (framed_by_chunks(VLLM.body)[:-18], Ending.RESET, Outcome.COMPLETED),  # all was said, up to [DONE]
        (framed_by_close(VLLM.body)[:-300], Ending.RESET, Outcome.RESET),
        (b"SSH-2.0-OpenSSH_9\r\n", Ending.CLOSED, Outcome.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Ending.CLOSED, Outcome.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000, Ending.CLOSED, Outcome.PROTOCOL),
        (b"HTTP/1.1 101 Up\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", Ending.CLOSED, Outcome.PROTOCOL),
        (b"HTTP/1.1 204 No\r\n\r\n", Ending.CLOSED, Outcome.EMPTY),
    ],
)
def test_how_the_connection_ends_counts(data: bytes, ending: Ending, outcome: Outcome) -> None:
    """A cut, a reset and bytes that are no HTTP are told apart, and from an answer that was whole before."""
    assert read(data, ending=ending)[1] is outcome


def test_interim_answers_are_passed_over() -> None:
    """100 Continue before the answer changes nothing."""
    assert read(b"HTTP/1.1 100 Continue\r\n\r\n" + framed_by_chunks(VLLM.body))[1] is Outcome.COMPLETED


def test_what_follows_an_answer_spoils_the_connection_alone() -> None:
    """Bytes after a whole answer leave it as it was; the connection is not used again."""
    whole = framed_by_length(VLLM.body)
    assert read(whole)[0].http.keep_alive
    answer, outcome, _ = read(whole + whole)
    assert (outcome, answer.reading.events) == (Outcome.COMPLETED, VLLM.events)
    assert not answer.http.keep_alive


def test_done_ends_a_stream_that_only_a_close_would_end() -> None:
    """A server that says [DONE] and holds the connection open is not waited for."""
    answer = Answer()
    answer.feed(framed_by_close(VLLM.body), 1.0)
    assert answer.over
    assert answer.verdict(Ending.WHOLE)[0] is Outcome.COMPLETED


def _cuts(size: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, size), max_size=30).map(lambda cuts: tuple(sorted(cuts)))


@given(data=st.data(), sample=st.sampled_from(GOOD), frame=st.sampled_from(FRAMINGS))
@settings(max_examples=150, deadline=None)
def test_reads_may_end_anywhere(data: st.DataObject, sample: Sample, frame: object) -> None:
    """Any cut of the bytes gives the same output, and each event the time of the piece that held its last byte."""
    assert callable(frame)
    whole = frame(sample.body)
    cuts = data.draw(_cuts(len(whole)))
    expected, outcome, _ = read(whole)
    got, found, reason = read(whole, cuts)
    assert (found, reason) == (outcome, "")
    assert got.reading.texts == expected.reading.texts
    assert got.reading.usage == expected.reading.usage
    assert got.reading.logprobs == expected.reading.logprobs
    arrivals = got.reading.arrivals()
    assert [(each.tokens, each.reasoning) for each in arrivals] == [
        (each.tokens, each.reasoning) for each in expected.reading.arrivals()
    ]
    times = [each.time_s for each in arrivals]
    assert times == sorted(times)
    assert not any(isnan(each) for each in times)


@pytest.mark.parametrize("frame", FRAMINGS)
@pytest.mark.parametrize("sample", GOOD, ids=lambda sample: sample.name)
def test_byte_by_byte(sample: Sample, frame: object) -> None:
    """One byte a read gives what one read gives."""
    assert callable(frame)
    whole = frame(sample.body)
    got, outcome, _ = read(whole, tuple(range(1, len(whole))))
    assert (outcome, "".join(got.reading.texts)) == (sample.outcome, sample.text)
    assert tuple(each.tokens for each in got.reading.arrivals()) == sample.tokens


def test_an_event_came_when_its_last_byte_did() -> None:
    """Two events cut inside the second: the first has the first read's time, the second the next one's."""
    whole = framed_by_length(VLLM.body)
    answer, _, _ = read(whole, (whole.index(b'"lo"'),))
    assert [each.time_s for each in answer.reading.arrivals()] == [0.0, 1.0]
    assert (answer.head_s, answer.last_s) == (0.0, 1.0)


NAMES = (
    ("choices", "delta", "message", "content", "text", "reasoning", "reasoning_content", "tool_calls", "function")
    + ("name", "arguments", "usage", "completion_tokens", "prompt_tokens", "prompt_tokens_details", "cached_tokens")
    + ("timings", "predicted_n", "token_ids", "logprobs", "tokens", "token_logprobs", "top_logprobs", "finish_reason")
    + ("error", "detail", "object", "index")
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(events=st.lists(JSON, max_size=4), whole=st.booleans(), frame=st.sampled_from(FRAMINGS))
@settings(max_examples=120, deadline=None)
def test_no_json_raises(events: list[object], whole: bool, frame: object) -> None:
    """JSON of any shape under the right names is an outcome, with a printable reason."""
    assert callable(frame)
    parts = [json.dumps(each).encode() for each in events]
    body = b"".join(parts) if whole else b"".join(b"data: " + each + b"\n\n" for each in parts)
    answer, outcome, reason = read(frame(body))
    assert isinstance(outcome, Outcome)
    assert reason.isprintable()
    assert len(reason) < 500
    assert all(each.tokens is None or each.tokens >= 0 for each in answer.reading.arrivals())


@given(
    data=st.binary(max_size=300),
    cuts=_cuts(300),
    frame=st.sampled_from((*FRAMINGS, None)),
    ending=st.sampled_from(Ending),
)
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise(data: bytes, cuts: tuple[int, ...], frame: object, ending: Ending) -> None:
    """Bytes of any kind, as HTTP or as a body, are one outcome and never a success."""
    sent = frame(data) if callable(frame) else data
    _, outcome, reason = read(sent, tuple(cut for cut in cuts if cut <= len(sent)), ending)
    assert outcome is not Outcome.COMPLETED
    assert reason
    assert reason.isprintable()


@given(data=st.data(), sample=st.sampled_from(GOOD), frame=st.sampled_from(FRAMINGS))
@settings(max_examples=200, deadline=None)
def test_no_damage_raises(data: st.DataObject, sample: Sample, frame: object) -> None:
    """A good answer with bytes put in, taken out or changed is still one outcome."""
    assert callable(frame)
    whole = bytearray(frame(sample.body))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole)))
        whole[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    cuts = data.draw(_cuts(len(whole)))
    for ending in Ending:
        _, outcome, reason = read(bytes(whole), cuts, ending)
        assert isinstance(outcome, Outcome)
        assert bool(reason) == (outcome is not Outcome.COMPLETED)
