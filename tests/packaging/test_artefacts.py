"""The wheel and the source archive: the same bytes from unlike builders, git's files and no others."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest
from release.artefacts import Artefacts, built_twice, checked, committed, unlike_git
from release.tree import git, project, version

pytestmark = pytest.mark.slow
COMMIT = git("rev-parse", "HEAD")  # someone may commit while the tests run


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Artefacts, Artefacts]]:
    """HEAD built by two builders with another folder, umask, zone, locale and hash seed."""
    folder = tmp_path_factory.mktemp("built")
    yield built_twice(folder, COMMIT)
    shutil.rmtree(folder)


def with_file(wheel: Path, name: str, folder: Path) -> Path:
    """A copy of the wheel with one more file, which its record lists."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(folder / wheel.name, "w") as new:
        for each in old.infolist():
            more = f"{name},,\n".encode() if each.filename.endswith("RECORD") else b""
            new.writestr(each, old.read(each) + more)
        new.writestr(name, "")
    return folder / wheel.name


def test_two_builders_make_the_same_bytes(twice: tuple[Artefacts, Artefacts]) -> None:
    """Wheel and source archive have one SHA-256 each, whoever builds them from the commit."""
    one, another = twice

    assert one.digests() == another.digests()
    assert set(one.digests()) == {f"servewise-{version()}-py3-none-any.whl", f"servewise-{version()}.tar.gz"}


def test_the_wheel_holds_what_git_holds(twice: tuple[Artefacts, Artefacts]) -> None:
    """Each file of the package in git is in the wheel, byte for byte, data files too, and nothing else is."""
    assert list(unlike_git(twice[0].wheel, COMMIT)) == []
    assert {"py.typed", "hardware/catalogue.toml", "report/templates/style.css"} <= committed(COMMIT).keys()


def test_a_stray_file_is_told(twice: tuple[Artefacts, Artefacts], tmp_path: Path) -> None:
    """A file that git does not hold, and tests, are found in a wheel."""
    spoilt = with_file(twice[0].wheel, "servewise/notes.txt", tmp_path)

    assert list(unlike_git(spoilt, COMMIT)) == ["notes.txt is in the wheel, not in git"]
    with_tests = with_file(spoilt, "tests/test_x.py", tmp_path / "again")
    assert "tests/test_x.py is in the wheel, not in git" in list(unlike_git(with_tests, COMMIT))


def test_the_checkers_of_the_field_pass_it(twice: tuple[Artefacts, Artefacts], tmp_path: Path) -> None:
    """check-wheel-contents and twine find nothing, and find a wheel that holds a second package at its top."""
    one, _ = twice

    assert list(checked(one)) == []
    spoilt = with_file(one.wheel, "tests/__init__.py", tmp_path)
    assert any("check_wheel_contents" in each for each in checked(Artefacts(spoilt, one.sdist)))


def test_its_metadata_say_what_it_is(twice: tuple[Artefacts, Artefacts]) -> None:
    """Version, licence with its text, each supported Python, and no need of the core that pyproject.toml lacks."""
    with zipfile.ZipFile(twice[0].wheel) as files:
        info = f"servewise-{version()}.dist-info"
        said = Parser().parsestr(files.read(f"{info}/METADATA").decode())
        assert "Version 2.0, January 2004" in files.read(f"{info}/licenses/LICENSE").decode()

    assert (said["Version"], said["License-Expression"]) == (version(), "Apache-2.0")
    assert "Typing :: Typed" in said.get_all("Classifier", [])
    core = [each for each in said.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert sorted(core) == sorted(project()["dependencies"])


def test_the_source_archive_holds_what_git_holds(twice: tuple[Artefacts, Artefacts]) -> None:
    """The archive is the commit's tree with the metadata added, so that it builds and its tests run."""
    with tarfile.open(twice[0].sdist) as files:
        inside = {each.name.partition("/")[2] for each in files if each.isfile()}

    assert inside - {"PKG-INFO"} == set(git("ls-tree", "-r", "-z", "--name-only", COMMIT).split("\0")) - {""}
