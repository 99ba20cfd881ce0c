"""The kernel's own times of TCP data that came and of data that left (Linux).

What an arrival's stamp means (Linux commit 98aaa913b4ed of 2017, "tcp: Extend SOF_TIMESTAMPING_RX_SOFTWARE to TCP
recvmsg"; tried here): ``recvmsg`` returns the arrival time of the *last* byte it hands over. A segment that arrives
while an earlier one is still unread is merged into it and the newer stamp is kept, so that a smaller read brings no
earlier stamps back. A time is therefore true for the last event of a read, and for an earlier one "at the latest": it
lies between the moment when the socket was last seen empty and the stamp. So the socket is read whole and soon
(parsing waits in slices), and how long data lay unread is measured in every run.

A departure is stamped as the last byte of a send goes to the network device (``SOF_TIMESTAMPING_TX_SOFTWARE``,
Documentation/networking/timestamping.rst) and handed back on the socket's error queue, mostly before the send returns.
The return itself may come milliseconds later on a busy machine: the server that was woken by the data runs first.
"""

from __future__ import annotations

import socket
import struct
import sys

SO_TIMESTAMPNS = 35  # asm-generic/socket.h: SO_TIMESTAMPNS_OLD; also the type of the control message
SO_TIMESTAMPING = 37  # SO_TIMESTAMPING_OLD
TX_SOFTWARE, TX_STAMP_ONLY = 1 << 1, 1 << 11  # linux/net_tstamp.h: the stamp comes back without the data
_TIMESPEC = struct.Struct("@ll")
ANCILLARY_BYTES = socket.CMSG_SPACE(_TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0

Ancillary = list[tuple[int, int, bytes]]


def switch_on(sock: socket.socket) -> bool:
    """Ask the kernel to stamp what arrives at ``sock`` and what leaves it; False where it cannot."""
    if sys.platform != "linux":
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TX_SOFTWARE | TX_STAMP_ONLY)
    except OSError:
        return False
    return True


def stamp_ns(ancillary: Ancillary) -> int | None:
    """Wall-clock arrival time [ns] of the last byte of a read; None where the kernel gave none."""
    for _, kind, data in ancillary:
        if kind == SO_TIMESTAMPNS and len(data) == _TIMESPEC.size:
            seconds, rest = _TIMESPEC.unpack(data)
            found: int = seconds * 1_000_000_000 + rest
            return found
    return None


def departure_ns(sock: socket.socket) -> int | None:
    """Wall-clock time [ns] at which the last byte sent so far left; None where the kernel has not said (again).

    Empties the error queue, as must be done whenever the socket reports an error condition. Raises no OSError.
    """
    latest = None
    while True:
        try:
            _, ancillary, _, _ = sock.recvmsg(0, ANCILLARY_BYTES, socket.MSG_ERRQUEUE)
        except OSError:  # empty, mostly; a real error is found by the next read
            return latest
        latest = stamp_ns(ancillary) or latest
