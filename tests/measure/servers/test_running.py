"""Servers that come up, and that do not, with a stand-in of the standard library."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from tests.measure.servers.fake import Fake, said
from tests.measure.servers.processes import alive, gone_within

from servewise.errors import InputError, RunFailed
from servewise.measure.servers.launch import Launch
from servewise.measure.servers.running import running

LONG_S = 30.0


class Absent(Fake):
    """A program that is not installed."""

    def launch(self, port: int) -> Launch:
        return replace(super().launch(port), command=("/no/such/program",))


def test_a_server_answers_within_the_block_and_is_gone_after_it(tmp_path: Path) -> None:
    """The URL that is handed out answers, and the process ends with the block."""
    with running(Fake(), tmp_path / "log") as server:
        pid = said(server.log, "pid")
        with urllib.request.urlopen(f"{server.url}/health") as answer:
            assert answer.status == 200
        server.check()
        assert alive(pid)
    assert gone_within(pid, LONG_S)


def test_an_exception_in_the_block_stops_the_server_and_is_passed_on(tmp_path: Path) -> None:
    """What is raised while a server runs comes out, with the server gone."""
    log = tmp_path / "log"
    with pytest.raises(ZeroDivisionError), running(Fake(), log):
        raise ZeroDivisionError
    assert gone_within(said(log, "pid"), LONG_S)


def test_a_server_that_dies_at_once_gives_the_end_of_its_log(tmp_path: Path) -> None:
    """The error names the exit code and the last lines, without control characters."""
    with pytest.raises(RunFailed) as failed, running(Fake("dies"), tmp_path / "log"):
        pass
    assert "exit code 7 before it was ready" in str(failed.value)
    assert "no such tensor" in str(failed.value)
    assert "\x1b" not in str(failed.value)


def test_a_program_that_is_not_there_is_a_failed_run(tmp_path: Path) -> None:
    """A command that cannot be started gives one clear line, like any other server that does not come up."""

    with pytest.raises(RunFailed, match="cannot be started"), running(Absent(), tmp_path / "log"):
        pass


def test_a_server_that_never_listens_is_given_up_and_stopped(tmp_path: Path) -> None:
    """After its patience the run fails with the log's end, and nothing is left behind."""
    log = tmp_path / "log"
    with pytest.raises(RunFailed, match=r"took over 2 s to be up.*still loading"), running(Fake("hangs", 2.0), log):
        pass
    assert gone_within(said(log, "pid"), LONG_S)


def test_a_server_that_refuses_its_first_request_fails_at_once(tmp_path: Path) -> None:
    """A 404 will not get better by waiting: its text is shown long before the patience ends."""
    began = time.monotonic()
    with pytest.raises(RunFailed, match=r"404.*no such model"), running(Fake("refuses", 300.0), tmp_path / "log"):
        pass
    assert time.monotonic() - began < 100


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """SIGKILL follows where SIGTERM does nothing."""
    with running(Fake("stubborn"), tmp_path / "log") as server:
        pid = said(server.log, "pid")
    assert gone_within(pid, LONG_S)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux lets a keeper adopt what a server left behind")
def test_what_a_server_started_in_another_session_goes_too(tmp_path: Path) -> None:
    """A grandchild outside the process group is adopted and ended."""
    with running(Fake("litters"), tmp_path / "log") as server:
        child = said(server.log, "child")
        assert alive(child)
    assert gone_within(child, LONG_S)


def test_a_server_that_dies_while_it_is_measured_is_noticed(tmp_path: Path) -> None:
    """``check`` raises with the exit code and the log, once the server is gone."""
    with running(Fake("late"), tmp_path / "log") as server:
        server.keeper.wait(LONG_S)
        with pytest.raises(RunFailed, match=r"exit code 3 while it was measured.*out of memory"):
            server.check()


def test_a_server_that_wants_a_full_batch_gets_one(tmp_path: Path) -> None:
    """Where nothing runs before three requests wait, three prove that it works."""
    with running(Fake("batch", first_requests=3), tmp_path / "log") as server:
        server.check()


def test_a_log_that_cannot_be_written_is_wrong_input(tmp_path: Path) -> None:
    """The path is named, and no server is started."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"), running(Fake(), tmp_path / "file" / "log"):
        pass


PROGRAM = """
    import time
    from pathlib import Path
    from tests.measure.servers.fake import Fake
    from servewise.measure.servers.running import running
    with running(Fake({habit!r}, grace_s=0.3), Path({log!r})) as server:
        print("up", flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("habit", ["good", "stubborn"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_program_ends_the_server_goes(tmp_path: Path, number: signal.Signals, habit: str) -> None:
    """Ctrl-C, SIGTERM and even SIGKILL of the program that measures leave no server behind."""
    log = tmp_path / "log"
    code = textwrap.dedent(PROGRAM).format(log=str(log), habit=habit)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        pid = said(log, "pid")
        program.send_signal(number)
        assert gone_within(pid, LONG_S)
        program.wait(LONG_S)
