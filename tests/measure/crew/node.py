"""Another host for tests: a process with a ``Relay`` in it, reached by calls over its standard input and output."""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from servewise.measure.crew.relay import Heard, Relay
from servewise.measure.crew.remote import LinkLost

_LENGTH = struct.Struct("<Q")


class Node:
    """A link to a process that stands for another host; its clock is ``ahead_s`` ahead of this machine's."""

    def __init__(self, name: str, workers: int, ahead_s: float = 0.0) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(workers), str(ahead_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._calls = 0
        self._answers: dict[int, Any] = {}
        self._changed = threading.Condition()
        self._lost = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def clock(self) -> float:
        return self._call("clock")  # type: ignore[no-any-return]

    def tell(self, seat: int, data: bytes) -> None:
        self._call("tell", seat, data)

    def hear(self, patience_s: float) -> list[Heard]:
        return self._call("hear", patience_s)  # type: ignore[no-any-return]

    def close(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(10)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def kill(self) -> None:
        """As a machine that loses its power: the node and with it all that it runs."""
        self.process.kill()

    def _call(self, name: str, *arguments: object) -> Any:
        assert self.process.stdin is not None
        with self._changed:
            self._calls += 1
            number = self._calls
            try:
                _write(self.process.stdin, (number, name, arguments))
            except (OSError, ValueError) as error:
                raise LinkLost("the node is gone") from error
            self._changed.wait_for(lambda: number in self._answers or self._lost)
            if number not in self._answers:
                raise LinkLost(self._lost)
            return self._answers.pop(number)

    def _read(self) -> None:
        assert self.process.stdout is not None
        while (message := _read(self.process.stdout)) is not None:
            with self._changed:
                self._answers[message[0]] = message[1]
                self._changed.notify_all()
        with self._changed:
            self._lost = "the node is gone"
            self._changed.notify_all()


def _write(file: Any, message: object) -> None:
    data = pickle.dumps(message)
    file.write(_LENGTH.pack(len(data)) + data)
    file.flush()


def _read(file: Any) -> Any:
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    data = file.read(_LENGTH.unpack(head)[0])
    return pickle.loads(data)


def main() -> None:
    """Serve calls, several at a time, until the input ends."""
    relay = Relay(int(sys.argv[1]), float(sys.argv[2]))
    lock = threading.Lock()

    def answer(number: int, name: str, arguments: tuple[Any, ...]) -> None:
        found = getattr(relay, name)(*arguments)
        with lock:
            _write(sys.stdout.buffer, (number, found))

    with ThreadPoolExecutor(4) as pool:
        while (message := _read(sys.stdin.buffer)) is not None:
            pool.submit(answer, *message)
    relay.close()


if __name__ == "__main__":
    main()
