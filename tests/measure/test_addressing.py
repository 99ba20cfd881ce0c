"""Addresses that users type."""

from __future__ import annotations

import pytest

from servewise.errors import InputError
from servewise.measure.addressing import target_of
from servewise.measure.target import Api


@pytest.mark.parametrize(
    ("url", "api", "host", "port", "path", "metrics"),
    [
        ("http://localhost:8000", "chat", "localhost", 8000, "/v1/chat/completions", "/metrics"),
        ("http://localhost:8000/", "completions", "localhost", 8000, "/v1/completions", "/metrics"),
        ("http://10.0.0.1:8000/v1", "chat", "10.0.0.1", 8000, "/v1/chat/completions", "/metrics"),
        ("http://h:1/v1/", "completions", "h", 1, "/v1/completions", "/metrics"),
        (
            "https://api.example.com/v1/chat/completions",
            "chat",
            "api.example.com",
            443,
            "/v1/chat/completions",
            "/metrics",
        ),
        ("https://h/proxy/a/v1/completions", "completions", "h", 443, "/proxy/a/v1/completions", "/proxy/a/metrics"),
        ("http://[::1]:8080", "chat", "::1", 8080, "/v1/chat/completions", "/metrics"),
        ("http://h/serve", "chat", "h", 80, "/serve/v1/chat/completions", "/serve/metrics"),
        ("https://h/api/paas/v4", "chat", "h", 443, "/api/paas/v4/chat/completions", "/api/paas/metrics"),
        ("https://h/v1?api-version=2", "chat", "h", 443, "/v1/chat/completions?api-version=2", "/metrics"),
        ("HTTP://Host:80", "chat", "host", 80, "/v1/chat/completions", "/metrics"),
    ],
)
def test_an_address_means_one_endpoint(url: str, api: Api, host: str, port: int, path: str, metrics: str) -> None:
    """A server, its /v1 and its whole endpoint are all understood, behind prefixes and with IPv6 too."""
    target = target_of(url, model="m", api=api)
    assert (target.host, target.port, target.path, target.metrics_path) == (host, port, path, metrics)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "localhost",
        "ftp://h",
        "http://",
        "http:///v1",
        "http://h:0",
        "http://h:99999",
        "http://h:x",
        "http://h:-1",
        "http://[::1",
        "http://a b",
        "http://h/\r\nX: y",
        "http://h\x00",
        "http://bücher.example",
        "http://h/#f",
        "http://u:p@h",
        "http://h/v1/chat/completions/../\x7f",
        "http://h?\n",
        "file:///etc/passwd",
        "http://h|h",
    ],
)
def test_nonsense_is_refused_in_one_line(url: str) -> None:
    """What is no address is refused with one printable line."""
    with pytest.raises(InputError) as caught:
        target_of(url, model="m")
    assert str(caught.value).isprintable()


def test_the_endpoint_of_the_other_api_is_refused() -> None:
    """A whole chat endpoint is not used for completions, nor the other way round."""
    with pytest.raises(InputError, match="chat"):
        target_of("http://h/v1/chat/completions", model="m", api="completions")
    with pytest.raises(InputError, match="completions"):
        target_of("http://h/v1/completions", model="m", api="chat")


def test_a_key_is_never_shown() -> None:
    """A key that HTTP cannot carry is refused without showing it, and a good one is not in the target's text."""
    with pytest.raises(InputError) as caught:
        target_of("http://h", model="m", key="secret\n")
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError) as caught:
        target_of("http://user:secret@h", model="m")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(target_of("http://h", model="m", key="secret"))


@pytest.mark.parametrize(
    "header", [("X y", "1"), ("", "1"), ("X", "a\r\nY: b"), ("Host", "h"), ("content-length", "3"), ("X", "é")]
)
def test_headers_that_would_break_a_request_are_refused(header: tuple[str, str]) -> None:
    """Header names are tokens, values hold no line ends, and the client's own headers stay its own."""
    with pytest.raises(InputError):
        target_of("http://h", model="m", headers=(header,))
