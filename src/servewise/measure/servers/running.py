"""A server while it runs: started, waited for until it answers, and stopped whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from servewise.errors import InputError, RunFailed
from servewise.measure.servers.launch import Launch, Launcher
from servewise.measure.servers.log import last_lines
from servewise.measure.servers.readiness import completed, healthy

KEEPER = Path(__file__).with_name("keeper.py")
LOOK_S = 0.1
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answered a request. ``started_s``: how long that took from its start [s]."""

    name: str
    url: str
    model: str
    version: str
    command: tuple[str, ...]
    log: Path
    started_s: float
    keeper: subprocess.Popen[bytes]

    def check(self) -> None:
        """Raise RunFailed, with the last lines of its log, where the server ended by itself."""
        _check(self.name, self.keeper, self.log, "while it was measured")


@contextmanager
def running(launcher: Launcher, log: Path, *, tell: Tell | None = None) -> Iterator[Running]:
    """``launcher``'s server on a free port of loopback, its output in ``log``.

    Raises RunFailed, with the last lines of the log, for a server that ends or hangs before it answered a request.
    However the block is left, the server and all that it started are gone after it; they also go where this process
    dies without a chance to say so.
    """
    port = free_port()
    launch, url = launcher.launch(port), f"http://127.0.0.1:{port}"
    if tell is not None:
        tell(f"starting {launcher.name} {launch.version}")
    began = time.monotonic()
    keeper = _start(launch, log)
    try:
        _wait(Waiting(launcher.name, launch, port, keeper, log))
        yield Running(
            name=launcher.name,
            url=url,
            model=launch.model,
            version=launch.version,
            command=launch.command,
            log=log,
            started_s=time.monotonic() - began,
            keeper=keeper,
        )
    finally:
        stop(keeper, launch.grace_s)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stop(keeper: subprocess.Popen[bytes], grace_s: float) -> None:
    """End the keeper, which ends the server; by force where that takes over twice the grace."""
    assert keeper.stdin is not None
    while True:
        try:
            with contextlib.suppress(OSError):
                keeper.stdin.close()
            keeper.wait(2 * grace_s + 5)
            return
        except subprocess.TimeoutExpired:
            keeper.kill()
        except KeyboardInterrupt:  # a second Ctrl-C: no more grace
            keeper.send_signal(signal.SIGKILL)


def _start(launch: Launch, log: Path) -> subprocess.Popen[bytes]:
    own = (sys.executable, "-I", str(KEEPER), str(launch.grace_s), str(os.getpid()))
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            return subprocess.Popen(
                (*own, *launch.command),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **launch.environment},
            )
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=str(log)) from error


class Waiting(NamedTuple):
    """A server that is not ready yet."""

    name: str
    launch: Launch
    port: int
    keeper: subprocess.Popen[bytes]
    log: Path

    def again(self, until: float, what: str) -> None:
        """Wait a little, unless the server ended or the time is over."""
        _check(self.name, self.keeper, self.log, "before it was ready")
        if time.monotonic() > until:
            took = f"took over {self.launch.patience_s:g} s {what}"
            raise RunFailed(_failure(self.name, took, self.log))
        time.sleep(LOOK_S)


def _wait(server: Waiting) -> None:
    """Until it is healthy and has answered its first requests."""
    launch, until = server.launch, time.monotonic() + server.launch.patience_s
    while not healthy(server.port, launch.health):
        server.again(until, "to be up")
    while True:
        left_s = until - time.monotonic()
        answers = completed(server.port, launch.model, launch.first_requests, left_s) or []
        if answers and all(each.status == 200 for each in answers):
            return
        for each in answers:
            if each.refused:
                what = f"refused its first request with {each.status} {' '.join(each.body.split())}"
                raise RunFailed(_failure(server.name, what, server.log))
        server.again(until, "to answer a request")


def _check(name: str, keeper: subprocess.Popen[bytes], log: Path, when: str) -> None:
    code = keeper.poll()
    if code is not None:
        raise RunFailed(_failure(name, f"ended with exit code {code} {when}", log))


def _failure(name: str, what: str, log: Path) -> str:
    lines = last_lines(log)
    return f"{name}'s server {what}; its log, {log}, ends: {' | '.join(lines) if lines else 'empty'}"
