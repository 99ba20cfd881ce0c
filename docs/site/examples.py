"""The ``console`` blocks of the documents: found, and run in a folder of the page's own.

The site's build sets what they print below them (``conf.py``); ``tests/docs`` runs the same by the same code.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from click.testing import CliRunner

DOCS = Path(__file__).parents[1]
FILES = Path(__file__).parent / "files"  # what a reader would have beside him: a config, a log, a trace
STAND_IN = "http://127.0.0.1:8000"  # where pages say that a server listens
_BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


class ExampleFailed(Exception):
    """A documented command ended otherwise than documented."""


def commands(block: str) -> list[str]:
    """The commands of a console block, continued lines joined; their output is not kept in the documents."""
    return [line[2:] for line in block.replace("\\\n", " ").splitlines() if line.startswith("$ ")]


def blocks(page: str) -> list[str]:
    """The insides of a page's console blocks, in order."""
    return _BLOCK.findall(page)


def with_outputs(page: str) -> str:
    """``page`` with what each command prints set below it."""
    if not blocks(page):
        return page
    with session() as run:
        return _BLOCK.sub(lambda found: _shown(found[1], run), page)


def _shown(block: str, run: Session) -> str:
    entries = re.split(r"^(?=\$ )", block, flags=re.MULTILINE)
    return "".join(_entry(each, run) for each in entries if each.strip())


def _entry(entry: str, run: Session) -> str:
    printed = "".join(run(command) for command in commands(entry)).rstrip()
    said = f"```console\n{entry.rstrip()}\n```\n"
    if not printed:
        return said + "\n"
    return f"{said}\n```{{code-block}} text\n:class: printed\n\n{printed}\n```\n\n"


class Session:
    """A shell of sorts: runs ``servewise`` commands one after another in one folder.

    A command written with ``|| test $? -eq N`` is one that ends with N: a gate that does not hold, say.
    """

    def __init__(self, folder: Path, to_end: ExitStack) -> None:
        self._folder, self._open = folder, to_end
        self._stand_in: str | None = None

    def __call__(self, command: str) -> str:
        """What ``command`` prints; ``ExampleFailed`` if it does not end as written."""
        from servewise.cli.main import servewise

        said, _, gate = command.partition(" || test $? -eq ")
        words = [each.replace(STAND_IN, self._server(each)) for each in shlex.split(said, comments=True)]
        if words[0] != "servewise":
            raise ExampleFailed(f"{command}: only servewise commands are run; write others as text")
        result = CliRunner().invoke(servewise, words[1:], env={"COLUMNS": "80", "NO_COLOR": "1"})
        if result.exit_code != int(gate or 0):
            raise ExampleFailed(f"{command}: ended with {result.exit_code}\n{result.output}") from result.exception
        return self._plain(result.output)

    def _plain(self, printed: str) -> str:
        """Without the folder's and the stand-in's own addresses."""
        printed = printed.replace(f"{self._folder}/", "")
        return printed.replace(self._stand_in, STAND_IN) if self._stand_in else printed

    def _server(self, word: str) -> str:
        """Where the stand-in listens, started at first need."""
        if STAND_IN in word and self._stand_in is None:
            self._stand_in = self._start()
        return self._stand_in or STAND_IN

    def _start(self) -> str:
        from servewise.measure.mock.plan import MockPlan
        from servewise.measure.mock.process import running_mock

        plan = MockPlan(first_s=(0.050, 0.060), gap_s=0.005)
        return self._open.enter_context(running_mock(plan)).url.removesuffix("/v1")


@contextmanager
def session() -> Iterator[Session]:
    """A session in a new folder that holds the files of the examples; the working folder meanwhile."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="servewise-docs-") as made, ExitStack() as to_end:
        folder = Path(made).resolve()
        shutil.copytree(FILES, folder, dirs_exist_ok=True)
        to_end.callback(os.chdir, before)
        os.chdir(folder)
        yield Session(folder, to_end)
