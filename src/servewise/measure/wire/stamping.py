"""The kernel's own arrival time of received TCP data (Linux, ``SO_TIMESTAMPNS``).

What a stamp means (Linux commit 98aaa913b4ed, 2017, "tcp: Extend SOF_TIMESTAMPING_RX_SOFTWARE to TCP recvmsg"; tried
here): ``recvmsg`` returns the arrival time of the *last* byte it hands over. A segment that arrives while an earlier
one is still unread is merged into it and the newer stamp is kept, so that a smaller read brings no earlier stamps
back. A time is therefore true for the last event of a read, and for an earlier one "at the latest": it lies between
the moment when the socket was last seen empty and the stamp. So the socket is read whole and soon (parsing waits in
slices), and how long data lay unread is measured in every run.
"""

from __future__ import annotations

import socket
import struct
import sys

SO_TIMESTAMPNS = 35  # asm-generic/socket.h: SO_TIMESTAMPNS_OLD; also the type of the control message
_TIMESPEC = struct.Struct("@ll")
ANCILLARY_BYTES = socket.CMSG_SPACE(_TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0

Ancillary = list[tuple[int, int, bytes]]


def switch_on(sock: socket.socket) -> bool:
    """Ask the kernel to stamp what arrives at ``sock``; False where it cannot."""
    if sys.platform != "linux":
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def stamp_ns(ancillary: Ancillary) -> int | None:
    """Wall-clock arrival time [ns] of the last byte of a read; None where the kernel gave none."""
    for _, kind, data in ancillary:
        if kind == SO_TIMESTAMPNS and len(data) == _TIMESPEC.size:
            seconds, rest = _TIMESPEC.unpack(data)
            return int(seconds) * 1_000_000_000 + int(rest)
    return None
