"""The stand-in server of exact times on a given port: ``stand_in.py PORT [broken]``."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.server import MockServer
from servewise.measure.mock.stamp import ask_for_stamps


def serve(port: int) -> None:
    """Serve until a signal ends it."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", port))
    ask_for_stamps(listener)
    listener.listen(128)
    listener.setblocking(False)
    server = MockServer(MockPlan(first_s=(0.002, 0.004), gap_s=0.0005), listener, None, Path(os.devnull))
    never, _writer = os.pipe()
    server.watch(never)
    while True:
        server.turn(never)


if __name__ == "__main__":
    if "broken" in sys.argv:
        print("no such model file", flush=True)
        sys.exit(1)
    serve(int(sys.argv[1]))
