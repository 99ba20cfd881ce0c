"""A chat template rendered in a process of its own, with a time and a memory that end: a template is foreign code.

Jinja's sandbox keeps a template from the machine, not from running for ever (a loop in a loop) or from filling the
memory (``'a' * 10**10``, ``10**10**10``). No hook inside one interpreter stops both; a process can be ended.

The child (``python -m servewise.engine.checkpoints.rendering``) reads lines of JSON, the template first, then messages,
and answers each with a line: ``{"text": ...}`` or ``{"error": ...}``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from servewise.engine.checkpoints.chat import ChatTemplate, Message
from servewise.errors import InputError

SECONDS = 5.0
MEMORY_BYTES = 1 << 30
MOST_CHARACTERS = 1 << 24
KEPT = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")  # no key among them


class ConfinedTemplate:
    """``template``, rendered elsewhere; may be called from any thread. The process starts with the first rendering."""

    def __init__(self, template: ChatTemplate, *, seconds: float = SECONDS) -> None:
        self._template, self._seconds = template, seconds
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def source(self) -> str:
        """The template."""
        return self._template.source

    def render(self, messages: Sequence[Message]) -> str:
        """As ``ChatTemplate.render``; raises InputError where it takes too long or too much memory, too."""
        with self._lock:
            answer = self._asked(json.dumps(messages).encode() + b"\n")
        if "error" in answer:
            raise InputError(*answer["error"][:1], where=answer["error"][1])
        return str(answer["text"])

    def start(self) -> None:
        """Start the process, so that the first rendering need not wait for it."""
        with self._lock:
            self._started()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _asked(self, line: bytes) -> dict[str, Any]:
        deadline = time.monotonic() + self._seconds
        for _ in range(2):  # a process that has died meanwhile is begun anew, once
            child = self._started()
            assert child.stdin is not None
            try:
                child.stdin.write(line)
                child.stdin.flush()
                answer = self._answer(child, deadline)
            except BrokenPipeError:
                answer = b""
            if answer.endswith(b"\n"):
                found: dict[str, Any] = json.loads(answer)
                return found
            self._end()
            if time.monotonic() >= deadline:
                break
        what = f"cannot render these messages: it takes over {self._seconds:g} s, or too much memory"
        return {"error": [what, self._template.where]}

    def _answer(self, child: subprocess.Popen[bytes], deadline: float) -> bytes:
        """The child's line; what there is of it where the time is over or the child ends."""
        assert child.stdout is not None
        parts: list[bytes] = []
        while not parts or not parts[-1].endswith(b"\n"):
            ready, _, _ = select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(child.stdout.fileno(), 1 << 16) if ready else b""
            if not part:
                break
            parts.append(part)
        return b"".join(parts)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", __name__, str(int(self._seconds) + 1)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in KEPT if name in os.environ},
                start_new_session=True,  # Ctrl-C is ours to hear
            )
            template = self._template
            first = {"source": template.source, "variables": dict(template.variables), "where": template.where}
            assert self._child.stdin is not None
            with suppress(BrokenPipeError):
                self._child.stdin.write(json.dumps(first).encode() + b"\n")
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def main() -> None:
    """The child: limits first, then lines until there are none."""
    seconds = int(sys.argv[1])
    _limit_memory()
    template = ChatTemplate(**json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        signal.alarm(seconds)  # if the parent is no more, nobody else ends a loop
        print(json.dumps(_rendered(template, json.loads(line))), flush=True)
        signal.alarm(0)


def _limit_memory() -> None:
    with suppress(ImportError):  # not on Windows
        import resource

        for what, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(what, (most, most))


def _rendered(template: ChatTemplate, messages: Sequence[Message]) -> dict[str, Any]:
    try:
        text = template.render(messages)
    except InputError as error:
        return {"error": [error.what, error.where]}
    if len(text) > MOST_CHARACTERS:
        return {"error": [f"renders over {MOST_CHARACTERS} characters", template.where]}
    return {"text": text}


if __name__ == "__main__":
    main()
