"""Tasks done on a Ray cluster: what is lost with a worker or a node is done again, elsewhere."""

from __future__ import annotations

import contextlib
import pickle
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from servewise.errors import InputError, RunFailed
from servewise.executing.build import Build, difference, this_build
from servewise.executing.cluster import answers, connect, first_line
from servewise.executing.notes import counted, note
from servewise.executing.told import heard, told

T = TypeVar("T")
R = TypeVar("R")
TRIES = 4  # of a task, where each is lost with its worker
AHEAD = 2  # tasks in the cluster's hands for each of its cores, so that none waits for us
LOOK_S = 5.0  # between two looks at the cluster
LOST_S = 40.0  # after which a cluster whose head does not answer is lost; Ray ends the program after 60

_held: dict[str, Any] = {}  # what a worker of the cluster was given last


class _Flight(NamedTuple):
    """A task in the cluster's hands."""

    number: int
    task: Any
    tries: int


class Cluster:
    """The workers of the cluster at ``address``; ``shared`` is sent once to each of its nodes that has a task."""

    def __init__(self, shared: Any, address: str, cores: int) -> None:
        self._stack = ExitStack()
        self._ray = self._stack.enter_context(connect(address, cores=cores))
        self._address = address if address.startswith("ray://") else self._ray.get_runtime_context().gcs_address
        self._key = secrets.token_hex(8)
        self._shared = self._ray.put(pickle.dumps(shared, protocol=5))
        self._call = self._ray.remote(num_cpus=1, max_retries=0)(_by_value())
        self._lost: list[str] = []
        self._cores = 0
        self._looked_s = self._heard_s = -LOST_S

    def results(self, function: Callable[[Any, T], R], tasks: Sequence[tuple[int, T]]) -> Iterator[tuple[int, R]]:
        """Each task's number and what ``function`` makes of it, as they are done."""
        waiting = deque(_Flight(number, task, 1) for number, task in tasks)
        flying: dict[Any, _Flight] = {}
        self._heard_s = time.monotonic()
        try:
            while waiting or flying:
                self._look()
                while waiting and len(flying) < max(1, AHEAD * self._cores):
                    flight = waiting.popleft()
                    flying[self._sent(function, flight.task)] = flight
                for ref in self._ended(flying):
                    flight = flying.pop(ref)
                    said = self._said(ref, flight)
                    if isinstance(said, _Flight):
                        waiting.append(said)
                    else:
                        yield flight.number, said[0]
        finally:
            self._cancel(flying)

    def close(self, *, broken_off: bool) -> None:  # noqa: ARG002
        """Leave the cluster, and end the one that was started here; say what was lost."""
        with contextlib.suppress(Exception):
            self._stack.close()
        if self._lost:
            note(f"{counted(len(self._lost), 'task')} lost with a worker, done again ({self._lost[-1]})")

    def _sent(self, function: Callable[[Any, T], R], task: T) -> Any:
        content = pickle.dumps((function, task), protocol=5)
        try:
            return self._call.remote(dict(this_build()), self._key, [self._shared], content)
        except (ConnectionError, self._ray.exceptions.RayError) as error:
            raise self._gone(first_line(error)) from error

    def _ended(self, flying: dict[Any, _Flight]) -> Sequence[Any]:
        try:
            ended, _ = self._ray.wait(list(flying), num_returns=1, timeout=LOOK_S)
        except (ConnectionError, self._ray.exceptions.RayError) as error:
            raise self._gone(first_line(error)) from error
        return ended  # type: ignore[no-any-return]

    def _said(self, ref: Any, flight: _Flight) -> tuple[Any] | _Flight:
        """What the task gave, or the task for another try."""
        errors = self._ray.exceptions
        try:
            said = self._ray.get(ref)
        except errors.RayTaskError as error:
            raise _defect(error) from error
        except (ConnectionError, errors.LocalRayletDiedError) as error:
            raise self._gone(first_line(error)) from error
        except (errors.ObjectStoreFullError, errors.OutOfDiskError) as error:
            raise RunFailed(f"the Ray cluster has no room: {first_line(error)}") from error
        except errors.RayError as error:
            return self._another(flight, error)
        if isinstance(said, tuple) and said[0] == "build":
            raise InputError(f"the cluster's {said[1]} has {said[2]}", where="executor", hint="install the same there")
        return (heard(said[1]),)

    def _another(self, flight: _Flight, error: BaseException) -> _Flight:
        reason = first_line(error)
        if flight.tries == TRIES:
            what = f"a task was lost with its worker {TRIES} times over"
            raise RunFailed(f"{what}: {reason}; a smaller workload needs less memory") from error
        self._lost.append(reason)
        return flight._replace(tries=flight.tries + 1)

    def _look(self) -> None:
        """How many cores the cluster has, and whether its head is still there; now and then."""
        now = time.monotonic()
        if now - self._looked_s < LOOK_S and self._cores:
            return
        self._looked_s = now
        if answers(self._address):
            self._heard_s = now
        elif now - self._heard_s > LOST_S:
            raise self._gone("its head does not answer")
        else:
            return
        with contextlib.suppress(Exception):  # between two heads; the next look tells
            self._cores = int(self._ray.cluster_resources().get("CPU", 0))

    def _gone(self, reason: str) -> RunFailed:
        return RunFailed(f"the Ray cluster at {self._address} is lost: {reason}")

    def _cancel(self, flying: dict[Any, _Flight]) -> None:
        for ref in flying:
            with contextlib.suppress(Exception):  # it may be gone, and the cluster with it
                self._ray.cancel(ref, force=False)  # by force Ray 2.60 aborts now and then (task_manager.cc)


def _by_value() -> Callable[..., Any]:
    """The function that the cluster runs: sent whole, so that a node without our package can say so."""

    def call(build: dict[str, str], key: str, shared: list[Any], content: bytes) -> Any:
        from servewise.executing.remote import perform

        return perform(build, key, shared, content)

    return call


def perform(build: Build, key: str, shared: list[Any], content: bytes) -> tuple[Any, ...]:
    """On a worker: what the task gives; or where this is not the build that asks, what differs, and nothing is read."""
    other = difference(build, this_build())
    if other is not None:
        return "build", socket.gethostname(), other
    import ray

    function, task = pickle.loads(content)  # of the driver, as is the function that runs this
    if key not in _held:
        _held.clear()
        _held[key] = pickle.loads(ray.get(shared[0]))
    return "result", told(function, _held[key], task)


def _defect(error: Any) -> BaseException:
    """A node that lacks our package, in a line; else the task's own error, with where it happened."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, ImportError):
        where, hint = "executor", "install servewise on every node"
        return InputError(f"the cluster cannot import it ({first_line(cause)})", where=where, hint=hint)
    return error  # type: ignore[no-any-return]
