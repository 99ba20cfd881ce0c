"""One request against a server of plain sockets."""

from __future__ import annotations

import socket

from tests.measure.drive.plain_server import END, HEAD, event, read_request, served

from servewise.measure.addressing import target_of
from servewise.measure.ask import Ask
from servewise.measure.drive.one import send_one
from servewise.measure.outcome import Outcome

ASK = Ask(serial=0, body=b'{"model":"m"}', output_tokens=2)


def _answer(peer: socket.socket) -> None:
    while read_request(peer):
        peer.sendall(HEAD + event("Hel") + event("lo", '"stop"') + END)


def test_a_request_comes_back_whole() -> None:
    """A streamed answer is completed, with its text, its arrivals in order of time, and the time that it was sent."""
    with served(_answer) as url:
        got = send_one(ASK, target_of(url, model="m"))
    assert (got.outcome, got.text, got.http_status, got.finish_reason) == (Outcome.COMPLETED, "Hello", 200, "stop")
    assert got.scheduled_s <= got.sent_s
    assert got.head_s <= got.first_token_s <= got.end_s
    assert [each.time_s for each in got.arrivals] == sorted(each.time_s for each in got.arrivals)
    assert (got.output_tokens, got.counted_by, got.events) == (2, "events", 2)


def test_the_request_is_what_was_asked() -> None:
    """The server receives the body as it was made, the endpoint's path and the key."""
    seen: list[bytes] = []

    def listen(peer: socket.socket) -> None:
        seen.append(read_request(peer))
        peer.sendall(HEAD + event("a", '"stop"') + END)

    with served(listen) as url:
        send_one(ASK, target_of(url, model="m", key="k", headers=(("X-A", "b"),)))
    head, _, body = seen[0].partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /v1/chat/completions HTTP/1.1"
    assert {b"Authorization: Bearer k", b"X-A: b", b"Content-Length: 13"} <= set(lines)
    assert body == ASK.body


def test_nobody_listens() -> None:
    """No server is a refusal with a reason that names it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    got = send_one(ASK, target_of(f"http://127.0.0.1:{port}", model="m"))
    assert got.outcome is Outcome.REFUSED
    assert str(port) in got.reason
    assert got.arrivals == ()


def test_a_server_that_quotes_the_request_does_not_get_its_secrets_into_the_reason() -> None:
    """The key, a header's value and a query's value are hidden; so is the part of a key before a cut."""

    def quote(peer: socket.socket) -> None:
        said = read_request(peer).partition(b"\r\n\r\n")[0].replace(b"\r\n", b" ")
        peer.sendall(b"HTTP/1.1 500 Oh\r\nConnection: close\r\n\r\n" + said)

    for padding in ("", "x" * 10, "x" * 20, "x" * 25):
        with served(quote) as url:
            headers = (("x-pad", padding or "x"), ("x-other", "Basic header-secret"))
            target = target_of(f"{url}/v1?sig=query-secret", model="m", key="sk-key-secret", headers=headers)
            got = send_one(ASK, target)
        assert got.outcome is Outcome.SERVER_ERROR
        assert "POST" in got.reason
        assert all(word not in got.reason for word in ("sk-key", "header-s", "query-s"))
