"""The stand-in server, driven with the standard library's client."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from servewise.errors import InputError, RunFailed
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock

QUICK = MockPlan(first_s=(0.03, 0.05), gap_s=0.004)


@pytest.fixture(scope="module")
def mock() -> Iterator[RunningMock]:
    """One server for the tests that leave it as it was."""
    with running_mock(QUICK) as server:
        yield server


def post(server: RunningMock, path: str = "/v1/chat/completions", wish: str = "", **body: Any) -> tuple[int, bytes]:
    """One generation's status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    given = {"messages": [{"role": "user", "content": "a b c"}]} if "chat" in path else {"prompt": "a b c"}
    document = {"model": "mock", "max_tokens": 6, "stream": True} | given | body
    try:
        connection.request("POST", path, json.dumps(document), {"x-mock": wish} if wish else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def get(server: RunningMock, path: str) -> tuple[int, bytes]:
    """One page."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def events(body: bytes) -> list[dict[str, Any]]:
    """The JSON of a stream's events, [DONE] left out."""
    datas = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
    return [json.loads(each) for each in datas if each != b"[DONE]"]


def text(body: bytes) -> str:
    """The text of a chat's stream."""
    deltas = [each["choices"][0]["delta"] for each in events(body) if each["choices"]]
    return "".join(each.get("content") or "" for each in deltas)


def test_tokens_never_leave_early(mock: RunningMock) -> None:
    """No token leaves before the plan's time after the request's last byte, and each is logged."""
    mock.forget()
    for _ in range(3):
        post(mock, max_tokens=10)
    log = mock.log()
    assert len(log) == 3
    for request in log:
        assert request.ended == "whole"
        assert list(request.told) == [1] * 10
        assert request.ttft_s >= QUICK.first_s[0]
        for place, sent in enumerate(request.sent_s):
            assert sent >= request.due_s[place]
            assert request.due_s[place] == pytest.approx(request.due_s[0] + place * QUICK.gap_s)


def test_the_request_is_stamped_before_it_is_read(mock: RunningMock) -> None:
    """Arrival is the kernel's stamp where there is one, and never later than when the program saw it."""
    mock.forget()
    post(mock)
    (request,) = mock.log()
    assert request.arrived_s <= request.read_s


def test_same_prompt_same_text(mock: RunningMock) -> None:
    """A prompt always gets the same text, another one another, and a stream the same as a whole answer."""
    first, again = text(post(mock)[1]), text(post(mock)[1])
    other = text(post(mock, messages=[{"role": "user", "content": "d e f"}])[1])
    whole = json.loads(post(mock, stream=False)[1])
    assert first == again == whole["choices"][0]["message"]["content"]
    assert first != other
    assert len(first.split()) == 6
    assert whole["usage"] == {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9}


@pytest.mark.parametrize("wish", ["split", "joined", "crlf", "comments", "no-space", "two-tokens", "until-close"])
def test_shapes_carry_the_same_text(mock: RunningMock, wish: str) -> None:
    """However the bytes are laid out, the text is the same."""
    status, body = post(mock, wish=wish)
    assert status == 200
    assert text(body) == text(post(mock)[1])
    assert body.rstrip().endswith(b"[DONE]")


def test_usage_comes_where_it_is_asked_for(mock: RunningMock) -> None:
    """As in vLLM: none unless asked for; last in an event without choices; or in every event."""
    none = events(post(mock)[1])
    last = events(post(mock, stream_options={"include_usage": True})[1])
    every = events(post(mock, stream_options={"include_usage": True, "continuous_usage_stats": True})[1])
    assert not any("usage" in each for each in none)
    assert last[-1]["choices"] == []
    assert last[-1]["usage"]["completion_tokens"] == 6
    assert [each["usage"]["completion_tokens"] for each in every if "usage" in each] == [1, 2, 3, 4, 5, 6, 6]


def test_completions_take_text_and_tokens(mock: RunningMock) -> None:
    """The completions API counts words of a text and numbers of a token list."""
    for prompt, tokens in (("a b c d", 4), ([5, 6, 7], 3)):
        status, body = post(mock, "/v1/completions", prompt=prompt, stream=False)
        assert status == 200
        assert json.loads(body)["usage"]["prompt_tokens"] == tokens


def test_pages(mock: RunningMock) -> None:
    """Health, models and metrics answer; another path is 404; an unknown model is 404."""
    assert get(mock, "/health")[0] == 200
    assert json.loads(get(mock, "/v1/models")[1])["data"][0]["id"] == "mock"
    assert b"vllm:num_requests_running{" in get(mock, "/metrics")[1]
    assert get(mock, "/v2/models")[0] == 404
    assert post(mock, model="other")[0] == 404


def test_a_fault_can_be_asked_for_in_three_ways(mock: RunningMock) -> None:
    """Header, user field and model name each choose the fault of one request."""
    assert post(mock, wish="500")[0] == 500
    assert post(mock, user="mock:503")[0] == 503
    assert post(mock, model="mock!401")[0] == 401
    assert post(mock, wish="no such thing")[0] == 400
    assert post(mock)[0] == 200


def test_turned_away_once(mock: RunningMock) -> None:
    """The same body is answered 429 the first time and served the second."""
    assert [post(mock, wish="429-once", user="x")[0] for _ in range(2)] == [429, 200]


def test_death_keeps_the_log() -> None:
    """When the plan has the server die, its process ends, and what it had sent is still known."""
    with running_mock(QUICK) as server:
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            post(server, wish=Fault.DIE.value)
        (request,) = server.log()
        assert list(request.told) == [1, 1, 1]
        assert not server.alive


def test_refusing_connections() -> None:
    """A server told to refuse takes no connection; the port is closed."""
    with running_mock(QUICK) as server:
        server.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_it_ends_when_its_user_fails() -> None:
    """The process is gone after the block, also when the block raised; a killed one cannot be asked."""
    with pytest.raises(ZeroDivisionError), running_mock(QUICK) as server:
        raise ZeroDivisionError
    assert not server.alive
    with running_mock(QUICK) as server:
        server.kill()
        with pytest.raises(RunFailed):
            server.forget()


def test_it_ends_with_the_process_that_started_it() -> None:
    """When its user is killed, the stand-in server ends by itself: no process is left behind."""
    code = """if True:
        import os, signal
        from servewise.measure.mock.process import running_mock
        with running_mock() as server:
            print(server.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    user = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    pid = int(user.stdout)
    until = time.monotonic() + 20
    while runs(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not runs(pid)


def runs(pid: int) -> bool:
    """Whether the process still runs (one that is dead and not yet waited for does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_over_ipv6() -> None:
    """It listens on IPv6's loopback too, where the machine has it."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    try:
        with running_mock(MockPlan(host="::1")) as server:
            assert "[::1]" in server.url
            socket.create_connection(("::1", server.port), timeout=5).close()
    except RunFailed:
        pytest.skip("no IPv6 loopback")


def test_plans_without_meaning_are_refused() -> None:
    """Negative times, shares over 1 and answers without a token are wrong input, said before anything starts."""
    for wrong in (
        {"first_s": (0.3, 0.2)},
        {"gap_s": -1.0},
        {"fault_share": 1.5},
        {"tokens": 0},
        {"slots": 0},
        {"first_table_s": (float("nan"),)},
    ):
        with pytest.raises(InputError):
            MockPlan(**wrong)


def test_a_slow_reader_holds_nobody_up(mock: RunningMock) -> None:
    """A client that does not read its answer delays no other: what its socket does not take waits for it alone."""
    body = {"model": "mock", "max_tokens": 4, "stream": True, "user": "slow"}
    body["messages"] = [{"role": "user", "content": "a"}]
    data = json.dumps(body).encode()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", mock.port))
        head = b"POST /v1/chat/completions HTTP/1.1\r\nx-mock: endless-event\r\ncontent-length: %d\r\n\r\n"
        slow.sendall(head % len(data) + data)
        assert slow.recv(64).startswith(b"HTTP/1.1 200")
        assert post(mock)[0] == 200
        assert mock.log().by_user()["slow"].ended in ("open", "whole", "cut")


def test_what_is_due_in_one_tick_leaves_together() -> None:
    """With a tick of 50 ms, tokens due each 5 ms leave in a fifth as many groups at most, none before it is due."""
    with running_mock(MockPlan(first_s=(0.0, 0.0), gap_s=0.005, tick_s=0.05)) as server:
        post(server, max_tokens=41)
        (request,) = server.log()
    groups = 1 + sum(after - before > 0.02 for before, after in pairwise(request.sent_s))
    assert groups <= 41 / 5
    assert all(sent >= due for sent, due in zip(request.sent_s, request.due_s, strict=True))
