"""Runs in processes of their own: progress, cancelling, replacing, and what is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from servewise.answer import Answer
from servewise.app import jobs as room
from servewise.app.jobs import Job, Jobs
from servewise.conditions import Conditions
from servewise.errors import InputError, RunFailed

CONDITIONS = Conditions(hardware="none", load="none", lengths="none", precision="none")
Progress = Callable[[int, int], None]


def ask(argv: Sequence[str], progress: Progress) -> Answer:
    """A question that steps, sleeps, fails or dies, as it is told."""
    match argv:
        case ("step", count):
            for done in range(int(count)):
                progress(done + 1, int(count))
        case ("sleep",):
            progress(1, 2)
            time.sleep(60)
        case ("wrong",):
            raise InputError("is wrong", where="field", hint="mend it")
        case ("die",):
            os._exit(1)
    return Answer("test", CONDITIONS, {"argv": list(argv)})


@pytest.fixture
def kept() -> dict[tuple[str, ...], Answer]:
    """The answers that came."""
    return {}


@pytest.fixture
def jobs(kept: dict[tuple[str, ...], Answer]) -> Iterator[Jobs]:
    """Jobs whose answers are kept."""
    found = Jobs(ask, ["tests.app.test_jobs"], kept.__setitem__)
    yield found
    found.close()


def ended(job: Job) -> Job:
    """The job after it has ended."""
    wait(lambda: job.state != "running")
    return job


def wait(until: Callable[[], bool]) -> None:
    """Wait for something, not for ever."""
    end = time.monotonic() + 30
    while not until():
        assert time.monotonic() < end, "did not come"
        time.sleep(0.01)


def alive(job: Job) -> bool:
    """Whether its process still runs."""
    try:
        os.kill(job.process.pid, 0)
    except ProcessLookupError:
        return False
    return bool(job.process.is_alive())


def test_a_run_tells_how_far_it_is_and_answers(jobs: Jobs, kept: dict[tuple[str, ...], Answer]) -> None:
    """The last progress is all of it, and the answer is kept under its command line."""
    job = ended(jobs.start("tab", ("step", "5")))
    assert job.to_json() == {"job": job.key, "state": "done", "done": 5, "total": 5}
    assert kept["step", "5"].result == {"argv": ["step", "5"]}


def test_a_cancelled_run_is_gone(jobs: Jobs, kept: dict[tuple[str, ...], Answer]) -> None:
    """Cancelling kills the process at once; no answer comes of it."""
    job = jobs.start("tab", ("sleep",))
    wait(lambda: job.done == 1)
    jobs.cancel(job.key)
    assert job.state == "cancelled"
    wait(lambda: not alive(job))
    assert not kept


def test_a_newer_run_replaces_the_older_of_its_owner_only(jobs: Jobs) -> None:
    """The same tab's older run is killed; another tab's goes on."""
    first, other = jobs.start("tab", ("sleep",)), jobs.start("other", ("sleep",))
    second = jobs.start("tab", ("step", "1"))
    assert (first.state, other.state) == ("cancelled", "running")
    assert ended(second).state == "done"
    wait(lambda: not alive(first))
    assert alive(other)


def test_a_mistake_comes_back_with_its_field(jobs: Jobs) -> None:
    """What, where and hint survive the way between processes."""
    job = ended(jobs.start("tab", ("wrong",)))
    assert job.state == "failed"
    assert isinstance(job.error, InputError)
    assert (job.error.what, job.error.where, job.error.hint) == ("is wrong", "field", "mend it")


def test_a_process_that_dies_is_a_failure(jobs: Jobs) -> None:
    """A run whose process ends without a word has failed, and says so."""
    job = ended(jobs.start("tab", ("die",)))
    assert job.state == "failed"
    assert "ended unexpectedly" in str(job.error)


def test_only_so_many_run_at_once(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than may run at once is refused with a line."""
    monkeypatch.setattr(room, "MOST_AT_ONCE", 2)
    for owner in "ab":
        jobs.start(owner, ("sleep",))
    with pytest.raises(RunFailed, match="2 runs are under way"):
        jobs.start("c", ("sleep",))


def test_a_run_that_nobody_asks_about_ends(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the tab was closed, its run does not go on for ever."""
    monkeypatch.setattr(room, "FORGOTTEN_S", 0.1)
    job = jobs.start("tab", ("sleep",))
    assert ended(job).state == "cancelled"
    wait(lambda: not alive(job))


def test_closing_ends_all(jobs: Jobs) -> None:
    """No process outlives the page."""
    found = [jobs.start(owner, ("sleep",)) for owner in "ab"]
    jobs.close()
    for job in found:
        wait(lambda job=job: not alive(job))  # type: ignore[misc]


PAGE = """
import time
from tests.app.test_jobs import Jobs, ask

if __name__ == "__main__":
    job = Jobs(ask, [], lambda *_: None).start("tab", ("sleep",))
    while not job.done:
        time.sleep(0.01)
    print(job.process.pid, flush=True)
    time.sleep(60)
"""


def test_a_killed_page_leaves_no_run(tmp_path: Path) -> None:
    """SIGKILL runs no code of the page's; its runs see that it is gone, and end."""
    script = tmp_path / "page.py"
    script.write_text(PAGE)
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=around) as page:
        assert page.stdout is not None
        run = int(page.stdout.readline())
        assert exists(run)
        page.kill()
    wait(lambda: not exists(run))


def exists(process: int) -> bool:
    """Whether there is a process of that number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
