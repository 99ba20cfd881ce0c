"""Tasks over processes: the same results in the same order, and errors that survive the way."""

from __future__ import annotations

import os

import pytest

from servewise.errors import InputError, UnknownName
from servewise.executing.executor import SMALL, Executor
from servewise.executing.workers import Workers


def scaled(shared: int, task: int) -> int:
    """The task times what the process holds."""
    return shared * task


def process(_: int, __: int) -> int:
    """Which process does it."""
    return os.getpid()


def refuse(_: int, task: int) -> int:
    """Fails as a hostile input would."""
    if task == 1:
        raise UnknownName("engine", "vlm", ["vllm"], where="engine")
    raise InputError("is wrong", where="task")


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order(processes: int) -> None:
    """However many processes there are, result i is that of task i."""
    with Workers(3, Executor(processes=processes)) as workers:
        assert list(workers.each(scaled, range(20))) == [3 * task for task in range(20)]


def test_one_process_is_the_callers_own() -> None:
    """With one process nothing is spawned, so that a plain script needs no guard."""
    with Workers(0, Executor()) as workers:
        assert set(workers.each(process, [0, 1])) == {os.getpid()}


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(("task", "line"), [(0, "task: is wrong"), (1, "engine: unknown engine 'vlm'")])
def test_a_mistake_keeps_its_sentence(processes: int, task: int, line: str) -> None:
    """An InputError raised in a worker reaches the caller as one, with what it says."""
    with pytest.raises(InputError, match=line), Workers(0, Executor(processes=processes)) as workers:
        list(workers.each(refuse, [task]))


def test_little_work_is_not_worth_a_process() -> None:
    """A handful of requests are run by the caller's own process, however many were allowed."""
    four, cluster = Executor(processes=4), Executor(processes=4, cluster="auto")

    assert (four.worthwhile(SMALL).processes, four.worthwhile(SMALL + 1).processes) == (1, 4)
    assert cluster.worthwhile(1) == cluster  # asked for by name, it is what does the work
