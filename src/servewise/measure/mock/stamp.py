"""When the bytes of a read came in, by the kernel's stamp where there is one."""

from __future__ import annotations

import socket
import struct
import sys
import time
from typing import Literal, NamedTuple

SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the same number names the control message
_TIMESPEC = struct.Struct("@ll")
_ROOM = socket.CMSG_SPACE(_TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0


class Reading(NamedTuple):
    """Data, and when its last byte came [s, monotonic]."""

    data: bytes
    time_s: float
    by: Literal["kernel", "user"]


def ask_for_stamps(sock: socket.socket) -> bool:
    """Let the kernel stamp what ``sock`` (and what it accepts) receives; False where it cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def read_stamped(sock: socket.socket, size: int) -> Reading:
    """Read what is there; BlockingIOError and other OSErrors as of ``recv``. The stamp is of the last segment read."""
    data, control, _, _ = sock.recvmsg(size, _ROOM)
    now_s = time.monotonic()
    for level, kind, value in control:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(value) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(value)
            stamped_s = seconds + nanoseconds * 1e-9 - wall_minus_monotonic()
            return Reading(data, min(stamped_s, now_s), "kernel")
    return Reading(data, now_s, "user")


def wall_minus_monotonic() -> float:
    """The wall clock (which the kernel stamps with) less the monotonic one, by the tightest of three looks [s]."""
    best, offset = float("inf"), 0.0
    for _ in range(3):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after - before < best:
            best, offset = after - before, (wall - (before + after) // 2) * 1e-9
    return offset
