"""A pytest plugin that runs no test but mutants: each in a fork of the collected session, by the tests that reach it.

A fork has everything imported and nothing run. There the code of one function is exchanged (every name that holds the
function sees it), what is remembered is forgotten, and the function's tests run, the fastest first, until one fails.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import _lru_cache_wrapper, partial
from pathlib import Path
from time import process_time
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

MOST_EXAMPLES = 60  # of a property: fewer find less, so the score is the lower for it
SECONDS, TIMES = 5, 4  # CPU seconds of a mutant's test: five, and four times what it took unmutated
MOST_BYTES = 6 << 30  # of a mutant's memory
KILLED, SURVIVED, TIMED_OUT, INVALID = "killed", "survived", "timed_out", "invalid"

settings.register_profile(
    "mutation",
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("mutation")


@dataclass(frozen=True)
class Job:
    """A mutant to run: a file as it was when it was read, and as it would be."""

    file: str
    source: str
    code: str


@dataclass
class Reach:
    """Of each test its CPU seconds, and the functions of the rooms that it calls."""

    seconds: dict[str, float]
    calls: dict[str, list[list[str]]]  # file and qualified name of each

    def tests(self, file: str, function: str) -> list[str]:
        """The tests that call it, the fastest first."""
        found = [name for name, calls in self.calls.items() if [file, function] in calls]
        return sorted(found, key=lambda name: (self.seconds[name], name))

    def save(self, path: Path) -> None:
        """For a later run of the same tests."""
        path.write_text(json.dumps([self.seconds, self.calls]))

    @classmethod
    def read(cls, path: Path) -> Reach:
        """What ``save`` wrote."""
        return cls(*json.loads(path.read_text()))


class Session:
    """The plugin. ``work`` is called with it once tests are collected; nothing else runs."""

    def __init__(self, rooms: tuple[str, ...], work: Callable[[Session], None]) -> None:
        self._rooms, self._work = rooms, work
        self.items: dict[str, pytest.Item] = {}
        self._caches: list[Any] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of the tests."""
        self.items = {item.nodeid: item for item in session.items}
        for item in session.items:
            _draw_fewer(item)
        objects = gc.get_objects()
        caches = (each for each in objects if isinstance(each, _lru_cache_wrapper))
        self._caches = [each for each in caches if str(each.__module__).startswith("servewise")]
        self._work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In a fork: the first failure is the end."""
        if report.failed:
            os._exit(1)

    def reach(self, known: Reach | None = None) -> Reach:
        """Run every test that is not ``known`` once, unmutated, in a fork of its own."""
        found = known or Reach({}, {})
        for name in self.items.keys() - found.seconds.keys():
            told = _in_fork(partial(self._traced, name), 600)
            assert told is not None, f"{name} fails unmutated"
            found.seconds[name], found.calls[name] = told["seconds"], told["calls"]
        gone = found.seconds.keys() - self.items.keys()
        for name in gone:
            del found.seconds[name], found.calls[name]
        return found

    def _traced(self, name: str) -> dict[str, Any]:
        calls: set[CodeType] = set()

        def called(frame: FrameType, event: str, arg: object) -> None:  # noqa: ARG001 - the tracer's seam
            calls.add(frame.f_code)

        begun = process_time()
        sys.settrace(called)
        self._run(name)
        sys.settrace(None)
        inside = [each for each in calls if each.co_filename.startswith(self._rooms)]
        names = {(each.co_filename, each.co_qualname.split(".<locals>")[0]) for each in inside}
        return {"seconds": process_time() - begun, "calls": sorted(names)}

    def _run(self, name: str) -> None:
        for each in self._caches:
            each.cache_clear()
        item = self.items[name]
        item.config.pluginmanager.unregister(name="terminalreporter")
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)

    def end_of(self, job: Job, reach: Reach) -> str:
        """What becomes of a mutant."""
        original = compile(job.source, job.file, "exec", dont_inherit=True)
        mutated = compile(job.code, job.file, "exec", dont_inherit=True)
        pair = next(_differing(original, mutated), None)
        if pair is None:
            return INVALID
        tests = reach.tests(job.file, pair[0].co_qualname)
        limits_s = {name: SECONDS + TIMES * reach.seconds[name] for name in tests}
        code = _status(lambda: self._mutated(*pair, limits_s), sum(limits_s.values()))
        return {0: SURVIVED, 1: KILLED, 3: INVALID, -signal.SIGXCPU: TIMED_OUT, -signal.SIGKILL: TIMED_OUT}.get(
            code, KILLED
        )

    def _mutated(self, original: CodeType, mutated: CodeType, limits_s: dict[str, float]) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        if not _exchanged(original, mutated):
            os._exit(3)
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        for name, limit_s in limits_s.items():
            resource.setrlimit(resource.RLIMIT_CPU, (min(most, int(process_time() + limit_s) + 1), most))
            self._run(name)


def _draw_fewer(item: pytest.Item) -> None:
    test = getattr(item, "obj", None)
    given = getattr(test, "_hypothesis_internal_use_settings", None)
    if given is not None and given.max_examples > MOST_EXAMPLES:
        test._hypothesis_internal_use_settings = settings(given, max_examples=MOST_EXAMPLES)  # type: ignore[union-attr]
    machine: Any = getattr(item, "cls", None)
    if isinstance(getattr(machine, "settings", None), settings):
        machine.settings = settings(machine.settings, max_examples=min(MOST_EXAMPLES, machine.settings.max_examples))


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module and of its classes, not those within functions."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & 0x02:  # CO_NEWLOCALS: a function; a class body has none
                yield each
            else:
                yield from _functions(each)


def _differing(original: CodeType, mutated: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    for before, after in zip(_functions(original), _functions(mutated), strict=True):
        if before != after and _plain(before) != _plain(after):
            yield before, after


def _plain(code: CodeType) -> tuple[object, ...]:
    """A function without its line numbers."""
    parts = tuple(_plain(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return code.co_code, parts, code.co_names, code.co_varnames, code.co_freevars


def _exchanged(original: CodeType, mutated: CodeType) -> bool:
    """Give the function of ``original`` the code of ``mutated``, wherever it is held; False: there is none such."""
    place = original.co_filename, original.co_qualname, original.co_firstlineno
    found = [each for each in gc.get_objects() if isinstance(each, FunctionType) and _place(each.__code__) == place]
    try:
        for each in found:
            each.__code__ = mutated
    except ValueError:  # it closes over other names than before
        return False
    return bool(found)


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _in_fork(work: Callable[[], dict[str, Any]], cpu_s: float) -> dict[str, Any] | None:
    """What ``work`` gives in a fork; None where it failed."""
    reads, writes = os.pipe()

    def told() -> None:
        with os.fdopen(writes, "w") as out:
            json.dump(work(), out)

    child = _forked(told, cpu_s)
    os.close(writes)
    with os.fdopen(reads) as text:
        answer = text.read()
    return json.loads(answer) if _ended(child) == 0 else None


def _status(work: Callable[[], None], cpu_s: float) -> int:
    return _ended(_forked(work, cpu_s))


def _forked(work: Callable[[], object], cpu_s: float) -> int:
    child = os.fork()
    if child:
        return child
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with us
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 3))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        work()
    except BaseException:
        os._exit(1)
    os._exit(0)


def _ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
