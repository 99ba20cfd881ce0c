"""The stand-in server's own process: its plan comes on stdin, then commands, one a line; it ends when stdin does."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import socket
import ssl
import sys
from pathlib import Path

from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.server import MockServer
from servewise.measure.mock.stamp import ask_for_stamps

BACKLOG = 4096


def main() -> None:
    """Serve until told otherwise. ``sys.argv``: a folder for certificate and log."""
    folder, plan = Path(sys.argv[1]), _plan()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process ends it
    _many_files()
    listener = _listener(plan)
    server = MockServer(plan, listener, _tls(plan, folder), folder / "log")
    server.watch(sys.stdin.fileno())
    _say(str(listener.getsockname()[1]))
    gc.collect()
    gc.freeze()
    gc.disable()  # nothing here makes cycles that outlive a request, and a collection would come late for a token
    while True:
        if server.turn(sys.stdin.fileno()) and not _obey(server, os.read(sys.stdin.fileno(), 1), folder):
            return


def _obey(server: MockServer, word: bytes, folder: Path) -> bool:
    """Do what a one-byte command says; False at the end."""
    if word == b"l":
        server.write_log(folder / "log")
    elif word == b"r":
        server.refuse()
    elif word == b"f":
        server.forget()
    else:
        return False
    _say("done")
    return True


def _plan() -> MockPlan:
    size = int.from_bytes(os.read(0, 8), "big") if len(sys.argv) == 2 else 0
    if not size:
        sys.exit("servewise.measure.mock is started by servewise.measure.mock.process.running_mock, not by hand")
    data = b""
    while len(data) < size:
        data += os.read(0, size - len(data))
    plan = pickle.loads(data)
    assert isinstance(plan, MockPlan)
    return plan


def _listener(plan: MockPlan) -> socket.socket:
    family = socket.AF_INET6 if ":" in plan.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((plan.host, 0))
    ask_for_stamps(listener)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def _tls(plan: MockPlan, folder: Path) -> ssl.SSLContext | None:
    if not plan.tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


def _many_files() -> None:
    """Raise the limit of open files to what is allowed: each stream is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
