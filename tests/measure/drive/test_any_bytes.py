"""A server that says anything at all, cut anywhere: each request ends in one outcome, and in time."""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measure.drive.flood import Flood
from tests.measure.drive.plain_server import END, HEAD, chunk, event, read_request, served

from servewise.measure.addressing import target_of
from servewise.measure.drive.drive import drive
from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome
from servewise.measure.target import Timeouts

REQUESTS = 2  # the second goes over the same connection, where the first has left it usable
IMPATIENT = Timeouts(connect_s=2.0, first_byte_s=0.06, idle_s=0.04, total_s=0.5)
HANGS_S = 10.0  # far over all timeouts together, however busy the machine is

WORDS = (
    HEAD,
    HEAD.replace(b"Transfer-Encoding: chunked", b"Content-Length: 200"),
    HEAD.replace(b"Transfer-Encoding: chunked\r\n", b""),
    HEAD.replace(b"1.1", b"1.0"),
    HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"),
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 307 There\r\nLocation: /\r\n\r\n",
    event("Hel"),
    event("lo", '"stop"'),
    event("\xff"),
    END,
    chunk(b'data: {"error": {"message": "boom"}}\n\n'),
    chunk(b"event: error\ndata: \n\n"),
    chunk(b'data: {"error": {"message": " "}}\n\n'),
    chunk(b'data: {"choices":[],"usage":{"completion_tokens":2}}\n\n'),
    b'data: {"choices":[{"text":"a","finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
    b"data: ",
    b"\r\n\r\n",
    b"\n\n",
    b"5\r\n",
    b"0\r\n",
    b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}',
)


class Said:
    """What the server says to every request, and how it goes on after the last piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.then = "close"

    def handle(self, peer: socket.socket) -> None:
        """Say it after each request."""
        while read_request(peer):
            for piece in self.pieces:
                peer.sendall(piece)
                time.sleep(0.001)
            if self.then == "reset":
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if self.then in ("reset", "close"):
                return


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Said]]:
    """A server and what it says."""
    said = Said()
    with served(said.handle) as url:
        yield url, said


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """``data`` in pieces."""
    cuts = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(cuts) if end > start]


@given(
    words=st.lists(st.sampled_from(WORDS) | st.binary(max_size=30), max_size=6),
    first=st.sampled_from((*WORDS[:6], b"")),
    places=st.lists(st.integers(0, 2000), max_size=4),
    then=st.sampled_from(("close", "close", "reset", "stall")),
)
@settings(max_examples=120, deadline=None)
def test_every_request_has_one_outcome_by_its_deadline(
    server: tuple[str, Said], words: list[bytes], first: bytes, places: list[int], then: str
) -> None:
    """Whatever comes, cut and ended however: one outcome a request, soon, with a reason; a success says so."""
    url, said = server
    data = first + b"".join(words)
    said.pieces, said.then = cut(data, places), then
    got: list[Exchange] = []
    began_s = monotonic()
    drive(Flood(range(REQUESTS), 1), target_of(url, model="m", timeouts=IMPATIENT), start_s=began_s, on_end=got.append)
    assert monotonic() - began_s < HANGS_S
    assert sorted(each.ask.serial for each in got) == list(range(REQUESTS))
    assert sum(Counter(each.outcome for each in got).values()) == REQUESTS
    for each in got:
        completed = each.outcome is Outcome.COMPLETED
        assert bool(each.reason) != completed
        assert each.reason.isprintable()
        assert not completed or b"[DONE]" in data or b"finish_reason" in data
