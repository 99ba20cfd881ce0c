"""Small documents."""

from __future__ import annotations

import socket

import pytest
from tests.measure.drive.plain_server import served

from servewise.errors import RunFailed
from servewise.measure.addressing import target_of
from servewise.measure.drive.get import get
from servewise.measure.mock.process import running_mock


def test_a_document_comes_back() -> None:
    """The stand-in server's models and metrics are read."""
    with running_mock() as mock:
        target = target_of(mock.url, model="mock")
        assert b"mock" in get(target, "/v1/models")
        assert b"# TYPE" in get(target, target.metrics_path)
        with pytest.raises(RunFailed, match="404"):
            get(target, "/none")


def _says(data: bytes) -> object:
    def handler(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(data)

    return handler


@pytest.mark.parametrize(
    "data", [b"", b"hello\r\n\r\n", b"HTTP/1.1 500 No\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"]
)
def test_anything_else_is_one_line(data: bytes) -> None:
    """No HTTP, an error and a cut are failures of the run in one printable line."""
    handler = _says(data)
    assert callable(handler)
    with served(handler) as url, pytest.raises(RunFailed) as caught:
        get(target_of(url, model="m"), "/metrics")
    assert str(caught.value).isprintable()


def test_a_document_without_end_is_given_up() -> None:
    """Neither a silent server nor one that drips is waited for beyond the time."""

    def drip(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(100):
            peer.sendall(b"x")
            peer.settimeout(0.05)
            try:
                if not peer.recv(1):
                    return
            except TimeoutError:
                continue

    with served(drip) as url, pytest.raises(RunFailed, match="in time"):
        get(target_of(url, model="m"), "/metrics", timeout_s=0.3)
