"""What is done about lost tasks, lost clusters and other builds, with a stand-in for Ray that loses what it is told to.

The real one runs in ``test_two_nodes``.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from tests.executing.tasks import scaled

from servewise.errors import InputError, RunFailed
from servewise.executing import remote
from servewise.executing.build import this_build
from servewise.executing.executor import Executor
from servewise.executing.remote import TRIES, perform
from servewise.executing.workers import Workers


class RayError(Exception):
    """As Ray's."""


class RayTaskError(RayError):
    """As Ray's."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class NodeDiedError(RayError):
    """As Ray's."""


class LocalRayletDiedError(RayError):
    """As Ray's."""


class FakeRay:
    """Two cores; ``fate`` says of the nth sending of a task what becomes of it; None: its result."""

    def __init__(self, fate: Callable[[int, int], BaseException | None]) -> None:
        self.fate, self.most = fate, 0
        self.sent: list[int] = []
        self.cancelled: list[int] = []
        self.exceptions = SimpleNamespace(
            RayError=RayError,
            RayTaskError=RayTaskError,
            LocalRayletDiedError=LocalRayletDiedError,
            ObjectStoreFullError=NotImplementedError,
            OutOfDiskError=NotImplementedError,
        )
        self._ends: dict[int, Any] = {}

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address="head:1")

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def put(self, value: Any) -> Any:
        return SimpleNamespace(value=value)

    def remote(self, **_: Any) -> Callable[[Any], Any]:
        return lambda _: SimpleNamespace(remote=self._send)

    def _send(self, build: Any, key: str, shared: list[Any], content: bytes) -> int:
        function, task = pickle.loads(content)
        self.sent.append(task)
        ref = len(self.sent)
        self._ends[ref] = self.fate(task, self.sent.count(task)) or (
            "result",
            function(pickle.loads(shared[0].value), task),
        )
        self.most = max(self.most, len(self._ends))
        return ref

    def wait(self, refs: list[int], **_: Any) -> tuple[list[int], list[int]]:
        return refs[-1:], refs[:-1]  # the last one sent ends first

    def get(self, ref: int) -> Any:
        end = self._ends.pop(ref)
        if isinstance(end, BaseException):
            raise end
        return end

    def cancel(self, ref: int, *, force: bool) -> None:
        assert not force
        self.cancelled.append(ref)


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[FakeRay, Callable[[], list[int]]]]:
    """A sweep of eight tasks over a stand-in with that fate."""

    def of(fate: Callable[[int, int], BaseException | None]) -> tuple[FakeRay, Callable[[], list[int]]]:
        ray = FakeRay(fate)

        @contextmanager
        def connect(_: str, *, cores: int) -> Iterator[FakeRay]:
            yield ray

        def run() -> list[int]:
            with Workers(3, Executor(cluster="head:1")) as workers:
                return list(workers.each(scaled, range(8)))

        monkeypatch.setattr(remote, "connect", connect)
        monkeypatch.setattr(remote, "answers", lambda _: True)
        return ray, run

    return of


def test_results_come_in_order_however_they_end(swept: Any) -> None:
    """The stand-in ends the last task first, and never holds more than two for each core."""
    ray, run = swept(lambda _task, _time: None)

    assert run() == [3 * task for task in range(8)]
    assert ray.most <= 4


def test_lost_tasks_are_done_again_and_counted(swept: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Tasks 2 and 5 are lost once and thrice with their node: same results, and one line says how many were lost."""
    times = {2: 1, 5: 3}
    ray, run = swept(lambda task, time: NodeDiedError("the node died") if time <= times.get(task, 0) else None)

    assert run() == [3 * task for task in range(8)]
    assert (ray.sent.count(2), ray.sent.count(5), len(ray.sent)) == (2, 4, 12)
    assert "4 tasks lost with a worker, done again (the node died)" in caplog.text


def test_a_task_that_is_always_lost_ends_the_sweep(swept: Any) -> None:
    """After its last try the run has failed, in one line; what else is in the cluster's hands is called off."""
    ray, run = swept(lambda task, _: NodeDiedError("worker crashed\nmany\nlines") if task == 1 else None)

    with pytest.raises(RunFailed) as raised:
        run()
    assert str(raised.value).startswith(f"a task was lost with its worker {TRIES} times over: worker crashed; ")
    assert ray.sent.count(1) == TRIES


def test_an_interrupt_calls_off_what_is_under_way(swept: Any) -> None:
    """Ctrl-C while tasks are in the cluster's hands: every one of them is cancelled."""
    ray, run = swept(lambda task, _: KeyboardInterrupt() if task == 3 else None)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert len(ray.cancelled) == 3


def test_a_defect_keeps_its_traceback_and_is_not_tried_again(swept: Any) -> None:
    """An error that is none of ours in a task is raised as Ray hands it over, at its first time."""
    ray, run = swept(lambda task, _: RayTaskError(ZeroDivisionError("division by zero")) if task == 2 else None)

    with pytest.raises(RayTaskError, match="division by zero"):
        run()
    assert ray.sent.count(2) == 1


def test_a_node_without_servewise_is_one_line(swept: Any) -> None:
    """Wrong input, with what to install."""
    missing = ModuleNotFoundError("No module named 'servewise'")
    _, run = swept(lambda _task, _time: RayTaskError(missing))

    with pytest.raises(InputError, match=r"cannot import it .*'servewise'.*; install servewise on every node"):
        run()


def test_another_build_is_refused(swept: Any) -> None:
    """What a worker of another build answers is wrong input, with the part that differs."""
    answer: Any = ("build", "node-7", "Python 3.12, not 3.11")
    _, run = swept(lambda _task, _time: answer)

    with pytest.raises(InputError, match=r"the cluster's node-7 has Python 3.12, not 3.11; install the same there"):
        run()


def test_a_worker_reads_nothing_of_another_build() -> None:
    """It compares builds before it unpickles: bytes that are no pickle at all are refused for the build."""
    other = {**this_build(), "servewise": "9.9 (abc)"}

    kind, _host, what = perform(other, "key", [], b"no pickle")
    assert (kind, what) == ("build", f"servewise {this_build()['servewise']}, not 9.9 (abc)")


@pytest.mark.parametrize("error", [ConnectionError("connection lost\nmore"), LocalRayletDiedError("raylet died")])
def test_a_lost_cluster_is_one_line(swept: Any, error: Exception) -> None:
    """The connection or this machine's own node gone: a failed run, not another try."""
    _, run = swept(lambda task, _: error if task == 4 else None)

    with pytest.raises(RunFailed, match=r"the Ray cluster at head:1 is lost: (connection lost|raylet died)$"):
        run()


def test_a_head_that_does_not_answer_for_long_is_lost(swept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing ends and nobody answers at the head's address: after ``LOST_S`` the run has failed."""
    now = [0.0]
    ray, run = swept(lambda _task, _time: None)

    def wait(refs: list[int], **_: Any) -> tuple[list[int], list[int]]:
        now[0] += 5.0
        return [], refs

    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(remote, "answers", lambda _: now[0] < 20.0)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    with pytest.raises(RunFailed, match="is lost: its head does not answer"):
        run()
    assert 15.0 + remote.LOST_S < now[0] <= 25.0 + remote.LOST_S
    assert len(ray.cancelled) == 4
