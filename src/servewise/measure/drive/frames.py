"""Messages between a run and its worker processes: pickled, each after its length."""

from __future__ import annotations

import pickle
import struct
from typing import Any

_LENGTH = struct.Struct("<Q")


def framed(message: object) -> bytes:
    """The bytes of a message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


class Frames:
    """Feed it bytes that may be cut anywhere; it returns the messages that ended in them."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are whole by now."""
        self._held += data
        found = []
        start = 0
        while len(self._held) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._held, start)
            end = start + _LENGTH.size + length
            if len(self._held) < end:
                break
            found.append(pickle.loads(bytes(self._held[start + _LENGTH.size : end])))
            start = end
        del self._held[:start]
        return found
