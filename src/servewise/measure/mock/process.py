"""The stand-in server as a process of its own, ended whatever happens."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servewise.errors import RunFailed
from servewise.measure.mock.certificate import make_certificate
from servewise.measure.mock.log import MockLog
from servewise.measure.mock.plan import MockPlan

PATIENCE_S = 10.0


class RunningMock:
    """A stand-in server that runs. ``url`` is its origin with ``/v1``, ``port`` and ``pid`` its own."""

    def __init__(self, plan: MockPlan, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        host = f"[{plan.host}]" if ":" in plan.host else plan.host
        self.plan, self.port, self.pid = plan, port, process.pid
        self.url = f"{'https' if plan.tls else 'http'}://{host}:{port}/v1"
        self._process, self._folder = process, folder

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def certificate(self) -> Path:
        """The certificate's file, where the plan has TLS."""
        return self._folder / "certificate.pem"

    @property
    def authority(self) -> Path:
        """The file of the authority that signed it, where it is not signed by itself."""
        return self._folder / "authority.pem"

    def log(self) -> MockLog:
        """What it did so far; after a death that the plan asked for, what it had done until then."""
        if self.alive:
            try:
                self._tell(b"l")
            except RunFailed:  # it died before it could answer
                self._process.wait(PATIENCE_S)
        try:
            log = pickle.loads((self._folder / "log").read_bytes())
        except OSError as error:
            raise RunFailed("the stand-in server ended without a log") from error
        assert isinstance(log, MockLog)
        return log

    def forget(self) -> None:
        """Clear its log and prefix cache; requests count from 0 again."""
        self._tell(b"f")

    def refuse(self) -> None:
        """Let it take no more connections."""
        self._tell(b"r")

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def _tell(self, word: bytes) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(word)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError as error:
            raise RunFailed("the stand-in server has ended") from error
        if answer != b"done\n":
            raise RunFailed("the stand-in server has ended")


@contextmanager
def running_mock(plan: MockPlan | None = None) -> Iterator[RunningMock]:
    """A stand-in server on a free loopback port, ended at the end; RunFailed where it does not start.

    Its process ends too when this one does: its standard input closes then.
    """
    plan = plan or MockPlan()
    with tempfile.TemporaryDirectory(prefix="servewise-mock-") as name:
        folder = Path(name)
        if plan.tls:
            make_certificate(folder, plan.certificate)
        process = subprocess.Popen(
            [sys.executable, "-m", "servewise.measure.mock", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            yield RunningMock(plan, process, _started(process, plan), folder)
        finally:
            _end(process)


def _started(process: subprocess.Popen[bytes], plan: MockPlan) -> int:
    """Give the process its plan; the port on which it listens."""
    assert process.stdin is not None
    assert process.stdout is not None
    data = pickle.dumps(plan)
    try:
        process.stdin.write(len(data).to_bytes(8, "big") + data)
        process.stdin.flush()
        return int(process.stdout.readline())
    except (OSError, ValueError) as error:
        raise RunFailed("the stand-in server did not start") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
