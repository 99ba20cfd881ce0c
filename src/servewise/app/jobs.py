"""Runs that take longer than a glance: a process each, with progress; killed when cancelled, replaced or forgotten."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from servewise.answer import Answer
from servewise.errors import InputError, RunFailed, ServewiseError

Progress = Callable[[int, int], None]
Ask = Callable[[Sequence[str], Progress], Answer]
FORGOTTEN_S = 20.0  # since anybody asked how it goes: the tab was closed
TELL_EVERY_S = 0.05
MOST_AT_ONCE = 8
KEPT = 32  # ended jobs whose end may still be asked for


@dataclass
class Job:
    """A run under way or ended; ``state`` is running, done, failed or cancelled; ``about`` is the starter's own."""

    key: str
    owner: str
    argv: tuple[str, ...]
    about: Any
    process: Any
    state: str = "running"
    done: int = 0
    total: int = 0
    error: ServewiseError | None = None
    began_s: float = field(default_factory=time.monotonic)
    asked_s: float = field(default_factory=time.monotonic)

    def to_json(self) -> dict[str, Any]:
        """How it goes, for the page."""
        return {"job": self.key, "state": self.state, "done": self.done, "total": self.total}


class Jobs:
    """``ended`` takes the Answer of a run that ends well. An ``owner`` (a view in a browser tab) has one at a time."""

    def __init__(self, ask: Ask, preload: Sequence[str], ended: Callable[[tuple[str, ...], Answer], None]) -> None:
        self._ask, self._ended = ask, ended
        self._context = _context(preload)
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def warm(self) -> None:
        """Have the process that others are forked from ready."""
        process = self._context.Process(target=_nothing, daemon=True)  # type: ignore[attr-defined]
        process.start()
        process.join()

    def start(self, owner: str, argv: tuple[str, ...], about: Any = None) -> Job:
        """Run ``argv`` for ``owner``, whose earlier run is killed. Raises RunFailed where too many run."""
        with self._lock:
            for other in self._running():
                if other.owner == owner:
                    _kill(other, "cancelled")
            if len(self._running()) >= MOST_AT_ONCE:
                raise RunFailed(f"{MOST_AT_ONCE} runs are under way; cancel one, or wait")
            ours, theirs = self._context.Pipe(duplex=False)
            process = self._context.Process(target=_work, args=(self._ask, argv, theirs))  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            job = Job(secrets.token_hex(8), owner, argv, about, process)
            self._jobs[job.key] = job
            self._forget()
        threading.Thread(target=self._follow, args=(job, ours), daemon=True).start()
        return job

    def get(self, key: str) -> Job | None:
        """The job of that key, now known to be wanted."""
        job = self._jobs.get(key)
        if job is not None:
            job.asked_s = time.monotonic()
        return job

    def cancel(self, key: str) -> Job | None:
        """Kill it, if it still runs."""
        job = self._jobs.get(key)
        if job is not None:
            with self._lock:
                _kill(job, "cancelled")
        return job

    def close(self) -> None:
        """Kill all."""
        with self._lock:
            for job in self._running():
                _kill(job, "cancelled")

    def _running(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.state == "running"]

    def _forget(self) -> None:
        over = [job.key for job in self._jobs.values() if job.state != "running"][:-KEPT]
        for key in over:
            del self._jobs[key]

    def _follow(self, job: Job, pipe: Connection) -> None:
        """What the process tells, until it ends."""
        try:
            while job.state == "running":
                if pipe.poll(0.5):
                    self._told(job, pipe.recv())
                elif time.monotonic() - job.asked_s > FORGOTTEN_S:
                    self.cancel(job.key)
        except (EOFError, OSError):
            with self._lock:
                if job.state == "running":
                    job.error = RunFailed("the run's process ended unexpectedly; a smaller run needs less memory")
                    job.state = "failed"
        finally:
            pipe.close()
            job.process.join()

    def _told(self, job: Job, message: tuple[str, Any]) -> None:
        kind, found = message
        if kind == "progress":
            job.done, job.total = found
            return
        if kind == "answer":
            self._ended(job.argv, found)
        else:
            job.error = InputError(found[0], where=found[1], hint=found[2])
        with self._lock:
            if job.state == "running":
                job.state = "done" if kind == "answer" else "failed"


def _kill(job: Job, state: str) -> None:
    """End the process and those that it started: they are one group."""
    if job.state != "running":
        return
    job.state = state
    try:
        os.killpg(job.process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # it has no group of its own yet, or is gone
        job.process.kill()


def _context(preload: Sequence[str]) -> BaseContext:
    """Processes forked from one that has the rooms imported; where that cannot be, started anew."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    return context


def _nothing() -> None:
    """What the first process does."""


def _end_with_the_page() -> None:
    """End the run, with what it started, once the page's process is gone: killed, it cancels nothing itself."""
    page = multiprocessing.parent_process()
    if page is not None:
        page.join()
        os.killpg(os.getpid(), signal.SIGKILL)


def _work(ask: Ask, argv: tuple[str, ...], pipe: Connection) -> None:
    """In the process: ask, tell, end."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_page, daemon=True).start()
    last = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > TELL_EVERY_S:
            last = time.monotonic()
            pipe.send(("progress", (done, total)))

    try:
        pipe.send(("answer", ask(argv, progress)))
    except InputError as error:
        pipe.send(("error", (error.what, error.where, error.hint)))
    except ServewiseError as error:
        pipe.send(("error", (str(error), "", "")))
