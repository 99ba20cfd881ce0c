"""The socket that the server listens on."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from servewise.engine.server.listening import address_of, bound, is_loopback
from servewise.errors import InputError


def test_any_free_port() -> None:
    """Port 0 gives two servers two ports, and addresses that say which."""
    with bound("127.0.0.1", 0) as first, bound("localhost", 0) as second:
        assert address_of(first) != address_of(second)
        assert address_of(first) == f"http://127.0.0.1:{first.getsockname()[1]}"
        assert is_loopback(first)
        assert is_loopback(second)


@pytest.mark.parametrize("host", ["127.0.0.1", "no such host", "203.0.113.1"])
def test_an_address_that_cannot_be_had(host: str) -> None:
    """A port that is taken, an unknown host and another machine's address give one clear line."""
    with bound("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="cannot listen") as raised:
            bound(host, port)

    assert f"{host}:{port}" in str(raised.value)
