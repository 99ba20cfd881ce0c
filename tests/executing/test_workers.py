"""Tasks over processes: the same results in the same order, errors that survive the way, processes that die."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.executing.tasks import counted, dies, dies_once, process, scaled

from servewise.errors import InputError, RunFailed, UnknownName
from servewise.executing.executor import SMALL, Executor
from servewise.executing.workers import Workers


def refuse(_: int, task: int) -> int:
    """Fails as a hostile input or a broken server would."""
    if task == 1:
        raise UnknownName("engine", "vlm", ["vllm"], where="engine")
    if task == 2:
        raise RunFailed("it broke")
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
@pytest.mark.parametrize(
    ("task", "kind", "line"),
    [
        (0, InputError, "task: is wrong"),
        (1, InputError, "engine: unknown engine 'vlm'; did you mean vllm?"),
        (2, RunFailed, "it broke"),
    ],
)
def test_a_mistake_keeps_its_sentence(processes: int, task: int, kind: type[Exception], line: str) -> None:
    """An error of ours raised in a worker reaches the caller as one, with what it says."""
    with pytest.raises(kind) as raised, Workers(0, Executor(processes=processes)) as workers:
        list(workers.each(refuse, [task]))

    assert str(raised.value) == line


def test_progress_counts_every_task_once() -> None:
    """What is told goes from 1 to all of them, whichever ends first."""
    told: list[tuple[int, int]] = []
    with Workers(3, Executor(processes=2)) as workers:
        list(workers.each(scaled, range(9), lambda done, total: told.append((done, total))))

    assert told == [(each, 9) for each in range(1, 10)]


def test_a_process_that_dies_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its tasks are done again, results are those of one process, and a line says so."""
    with Workers(tmp_path, Executor(processes=2)) as workers:
        assert list(workers.each(dies_once, range(6))) == [0, 1, 4, 9, 16, 25]

    assert "a worker process ended unexpectedly" in caplog.text


def test_a_task_that_kills_every_process_ends_as_one_line(tmp_path: Path) -> None:
    """After some times in a row it is a failed run, not a loop and no traceback of the pool."""
    with (
        pytest.raises(RunFailed, match="ended unexpectedly, 4 times in a row"),
        Workers(tmp_path, Executor(processes=2)) as workers,
    ):
        list(workers.each(dies, range(6)))


def test_tasks_that_leave_files_are_done_here_where_results_are_kept(tmp_path: Path) -> None:
    """They are done each time, in the caller's own process and last; the others are not done again."""
    marks, order = tmp_path / "marks", []
    marks.mkdir()
    for _ in range(2):
        with Workers(marks, Executor(keep=tmp_path)) as workers:
            order.append(list(workers.each(counted, range(4), here=lambda task: task == 1)))

    done = sorted(each.name.split("-")[0] for each in marks.iterdir())
    assert order == [[0, 1, 4, 9]] * 2
    assert done == ["0", "1", "1", "2", "3"]


def test_little_work_is_not_worth_a_process() -> None:
    """A handful of requests are run by the caller's own process; a cluster that is asked for does them all the same."""
    four, cluster = Executor(processes=4), Executor(processes=4, cluster="auto")

    assert (four.worthwhile(SMALL).processes, four.worthwhile(SMALL + 1).processes) == (1, 4)
    assert cluster.worthwhile(1) == cluster
