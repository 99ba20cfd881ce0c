"""Environments: made once, gone on with after an interruption, refused where there is no room."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from servewise.errors import InputError, RunFailed
from servewise.measure.servers.environment import Recipe, made, make


def wheel(folder: Path, name: str) -> Path:
    """A wheel with one module, as a wheel is defined (PEP 427)."""
    path, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "ANSWER = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{each},,\n" for each in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(each, text)
    return path


def run(python: Path, code: str) -> str:
    """What the code prints."""
    return subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_an_environment_is_made_kept_and_made_again_by_another_recipe(tmp_path: Path) -> None:
    """Packages are installed, others taken out, the alias is found; the second time nothing is done."""
    one, other = wheel(tmp_path, "one_package"), wheel(tmp_path, "other_package")
    recipe = Recipe(
        name="trial",
        packages=(str(one), str(other)),
        without=("other_package",),
        alias=("known-as", "3.2+cpu"),
    )
    folder, told = tmp_path / "environments", list[str]()
    assert made(recipe, folder) is None
    python = make(recipe, folder, tell=told.append)
    assert run(python, "import one_package; print(one_package.ANSWER)") == "42"
    assert run(python, "import importlib.util as u; print(u.find_spec('other_package'))") == "None"
    assert run(python, "from importlib.metadata import version; print(version('known-as'))") == "3.2+cpu"
    assert any("Successfully installed" in line for line in told)
    told.clear()
    assert make(recipe, folder, tell=told.append) == python
    assert told == []
    assert made(Recipe(name="trial", packages=(str(one),)), folder) is None


@pytest.mark.slow
def test_a_package_that_cannot_be_installed_fails_with_pips_words_and_is_mended_later(tmp_path: Path) -> None:
    """The failed attempt leaves an environment that does not count as made; the next one goes on in it."""
    missing = tmp_path / "late_package-1.0-py3-none-any.whl"
    recipe = Recipe(name="trial", packages=(str(missing),))
    with pytest.raises(RunFailed, match="late_package"):
        make(recipe, tmp_path / "environments")
    assert made(recipe, tmp_path / "environments") is None
    wheel(tmp_path, "late_package")
    python = make(recipe, tmp_path / "environments")
    assert run(python, "import late_package; print(late_package.ANSWER)") == "42"


def test_a_disk_without_room_is_said_before_anything_is_made(tmp_path: Path) -> None:
    """What it takes and what is free are both named."""
    with pytest.raises(InputError, match="are free"):
        make(Recipe(name="huge", packages=(), needs_bytes=2**62), tmp_path)
    assert not (tmp_path / "huge").exists()


def test_a_folder_that_cannot_be_made_is_wrong_input(tmp_path: Path) -> None:
    """A file in the folder's place gives one clear line."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        make(Recipe(name="trial", packages=()), tmp_path / "file")


def test_a_damaged_record_means_not_made(tmp_path: Path) -> None:
    """Rubbish where the recipe should stand is no environment."""
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "servewise.json").write_bytes(b"\xff{")
    assert made(Recipe(name="trial", packages=()), tmp_path) is None
