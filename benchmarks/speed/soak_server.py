"""The server that is soaked: a process of its own with small limits, watched from outside through /proc."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MODEL = "smollm2-135m-instruct"
SLOTS, QUEUED, BLOCKS = 8, 4, 64  # 1,024 tokens of KV
LIMITS = {
    "--slots": SLOTS,
    "--max-queued": QUEUED,
    "--blocks": BLOCKS,
    "--max-context": 512,
    "--max-unread": 64,
    "--stall-timeout": "4s",
    "--head-timeout": "3s",
    "--body-timeout": "4s",
    "--max-body": 262_144,
    "--max-connections": 64,
    "--threads": 1,
    "--grace": 20,
    "--port": 0,
}


@dataclass
class Server:
    """A running server; ``ended`` is how it ended after ``stop``: its exit code and what it wrote to stderr."""

    process: subprocess.Popen[str]
    url: str
    key: str
    errors: IO[str]
    kernels: str
    ended: tuple[int, str] | None = None

    def usage(self) -> dict[str, int]:
        """Resident bytes of it and its children, open files, threads."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return {
            "rss_bytes": sum(map(_resident, (pid, *map(int, children)))),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": len(os.listdir(f"/proc/{pid}/task")),
        }

    def stop(self) -> None:
        """SIGTERM, as an orchestrator does."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.errors.seek(0)
        self.ended = (code, self.errors.read())


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:  # it has just ended
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def served(nice: int = 0) -> Iterator[Server]:
    """The server for the time of the block; its key is new and comes by the environment."""
    key = f"sk-{secrets.token_hex(16)}"
    options = [str(each) for pair in LIMITS.items() for each in pair]
    command = ["nice", "-n", str(nice), sys.executable, "-m", "servewise", "serve", MODEL, *options, "--json"]
    environment = os.environ | {"SERVEWISE_API_KEY": key}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as process,
    ):
        try:
            said = _said(process)
            yield Server(process, said["url"], key, errors, said["kernels"])
        finally:
            process.kill()


def _said(process: subprocess.Popen[str]) -> dict[str, str]:
    """What it said at its start."""
    assert process.stdout is not None
    text = ""
    while not text.endswith("\n}\n"):
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the server did not start")
        text += line
    found: dict[str, str] = json.loads(text)["result"]
    return found
