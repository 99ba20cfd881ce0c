"""HTTP without the official client: what it would never send, and hanging up in the middle."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from tests.engine.server.serving import BOUND_S, KEY, Running


def connection(running: Running) -> http.client.HTTPConnection:
    """A connection of its own."""
    where = urlsplit(running.url)
    assert where.hostname is not None
    return http.client.HTTPConnection(where.hostname, where.port, timeout=BOUND_S)


def send(running: Running, path: str, body: object, *, key: str = KEY, kind: str = "application/json") -> Any:
    """Send ``body`` (bytes as they are) and return the open connection."""
    found = connection(running)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    found.request("POST", path, data, {"content-type": kind, "authorization": f"Bearer {key}"})
    return found


def post(running: Running, path: str, body: object, **how: str) -> tuple[int, Any]:
    """Status and document of the answer."""
    found = send(running, path, body, **how)
    try:
        response = found.getresponse()
        return response.status, json.loads(response.read())
    finally:
        found.close()


def get(running: Running, path: str) -> tuple[int, str]:
    """Status and text of the answer."""
    found = connection(running)
    try:
        found.request("GET", path)
        response = found.getresponse()
        return response.status, response.read().decode()
    finally:
        found.close()
