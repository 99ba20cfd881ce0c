"""The built wheel at work: installed alone, typed, on each Python of this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from release.artefacts import built
from release.closure import closure
from release.from_wheel import COMMANDS, SIZE, asked, each_python, first_day, rooms_pass
from release.interpreters import interpreter, version_of
from release.place import Failed, Place, place
from release.tree import git, requirements, supported

pytestmark = pytest.mark.slow
COMMIT = git("rev-parse", "HEAD")  # someone may commit while the tests run
HERE = f"3.{sys.version_info.minor}"
FEW = (COMMANDS[0], (*SIZE, "--json"), (*SIZE, "--output", "size.html"))

CONSUMER = """
import servewise
from servewise.simulate.run import simulate
from servewise.units import GIB

answer = servewise.size("llama-3.1-8b", accelerator="l4", context=8192)
reveal_type(answer)
reveal_type(simulate)
words: str = GIB
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """HEAD's wheel; the tree that it was built from is gone."""
    folder = tmp_path_factory.mktemp("wheel")
    made = built(folder, COMMIT)
    assert not (folder / "tree").exists()
    yield made.wheel
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """An environment of this Python with the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("core") / "place"
    made = place(folder, wheel, Path(sys.executable))
    made.install((), lowest=False)
    yield made
    shutil.rmtree(folder)


def test_the_core_brings_what_its_metadata_say(core: Place) -> None:
    """What an installer brought is what following the metadata finds: the licences and the bill are of all of it."""
    assert core.brought() == closure(requirements()).keys()


def test_a_first_day_with_the_core_alone(core: Place) -> None:
    """The commands end well without a warning, nothing heavy is there, and pages are pages."""
    first_day(core)


def test_the_source_tree_is_out_of_reach(core: Place) -> None:
    """What runs is what was installed, and nothing on its path lies in the tree."""
    path = core.run(core.python, "-c", "import servewise, sys; print(servewise.__file__, *sys.path, sep='\\n')").split()

    assert Path(path[0]).is_relative_to(core.folder)
    assert not [each for each in path if Path(each).is_relative_to(Path(__file__).parents[2])]


def test_its_types_are_seen_by_who_uses_it(core: Place, tmp_path: Path) -> None:
    """mypy --strict finds the types of the installed package, and the consumer's one mistake."""
    (tmp_path / "consumer.py").write_text(CONSUMER)
    words = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(core.python), "consumer.py"]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    assert 'Revealed type is "servewise.answer.Answer"' in said
    assert "def (" in said
    assert "Any" not in said.splitlines()[0]
    assert [each for each in said.splitlines() if "error:" in each] == [
        'consumer.py:9: error: Incompatible types in assignment (expression has type "int", variable has type "str")'
        "  [assignment]"
    ]


def test_its_own_tests_pass_from_the_wheel(core: Place) -> None:
    """Tests of a room, copied out of the tree, pass against the installed package."""
    core.equip(lowest=False)

    assert "passed" in rooms_pass(core, ("pricing",), "1", COMMIT)


@pytest.mark.parametrize("python", [each for each in supported() if each != HERE])
def test_each_other_python_of_this_machine(wheel: Path, tmp_path: Path, python: str) -> None:
    """The wheel installs and answers without a warning on every Python that is promised and here."""
    found = interpreter(python)
    if found is None:
        pytest.skip(f"Python {python} is not on this machine: `make wheel-test` on one that has it")
    here = place(tmp_path / "place", wheel, found)
    here.install((), lowest=False)

    first_day(here, FEW)
    assert version_of(here.python) == python
    shutil.rmtree(tmp_path / "place")


def test_a_python_that_is_missing_fails(wheel: Path, tmp_path: Path) -> None:
    """A version that was asked for and is not here is named and fails: it is never left out in silence."""
    lines = list(each_python(wheel, tmp_path, asked(["--pythons", "3.99"])))

    assert lines == [(False, "Python 3.99: not on this machine")]


def test_a_command_that_fails_is_told(core: Place) -> None:
    """The step that ends otherwise is named with its last words; a warning in it counts as well."""
    with pytest.raises(Failed, match="unknown model 'no-such-model'"):
        core.run(core.python, "-m", "servewise", "size", "no-such-model", "--accelerator", "l4")
    with pytest.raises(Failed, match="UserWarning"):
        core.run(core.python, "-c", "import warnings; warnings.warn('x')", PYTHONWARNINGS="error")
