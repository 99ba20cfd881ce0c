"""When the bytes of a read came in, by the kernel's stamp where there is one."""

from __future__ import annotations

import socket
import sys
import time
from typing import Literal, NamedTuple

from servewise.measure.wire.run_clock import RunClock
from servewise.measure.wire.stamping import ANCILLARY_BYTES, SO_TIMESTAMPNS, stamp_ns

_CLOCK = RunClock(0.0)


class Reading(NamedTuple):
    """Data, and when its last byte came [s, monotonic]."""

    data: bytes
    time_s: float
    by: Literal["kernel", "user"]


def ask_for_stamps(listener: socket.socket) -> None:
    """Let the kernel stamp what comes, where it can. Accepted sockets inherit it: their first bytes are stamped too."""
    if sys.platform == "linux":
        listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def read_stamped(sock: socket.socket, size: int) -> Reading:
    """Read what is there; BlockingIOError and other OSErrors as of ``recv``."""
    data, ancillary, _, _ = sock.recvmsg(size, ANCILLARY_BYTES)
    now_s = time.monotonic()
    stamp = stamp_ns(ancillary)
    if stamp is None:
        return Reading(data, now_s, "user")
    return Reading(data, min((stamp - _CLOCK.follow()) * 1e-9, now_s), "kernel")
