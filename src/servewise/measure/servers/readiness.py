"""Whether a server that was started is ready: it answers on its health path, and completes requests."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack, closing
from typing import NamedTuple

LONGEST_BYTES = 2**20
LOOK_S = 2.0
FAULTS = (OSError, http.client.HTTPException)


class Answered(NamedTuple):
    """An answer's status and the start of its body."""

    status: int
    body: str

    @property
    def refused(self) -> bool:
        """Whether asking again will not help: the request itself is wrong for this server."""
        return 400 <= self.status < 500


def healthy(port: int, path: str) -> bool:
    """Whether a GET of ``path`` gives 200."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LOOK_S)) as connection:
        try:
            connection.request("GET", path)
            return _read(connection).status == 200
        except FAULTS:
            return False


def completed(port: int, model: str, requests: int, within_s: float) -> list[Answered] | None:
    """The answers to ``requests`` completions of one token that are all under way at once; None where one got none."""
    body = json.dumps({"model": model, "prompt": "One, two,", "max_tokens": 1, "temperature": 0}).encode()
    with ExitStack() as stack:
        opened = [
            stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", port, timeout=max(within_s, LOOK_S))))
            for _ in range(requests)
        ]
        try:
            for connection in opened:
                connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            return [_read(connection) for connection in opened]
        except FAULTS:
            return None


def _read(connection: http.client.HTTPConnection) -> Answered:
    answer = connection.getresponse()
    return Answered(answer.status, answer.read(LONGEST_BYTES)[:300].decode("utf-8", "replace"))
