"""The wheel and the source archive: built from a commit twice, under unlike circumstances, to the same bytes.

    python -m release.artefacts [--output dist]

Built from an export of HEAD, so that no file that git does not hold can slip in. Each is built in a folder of its own
with another umask, clock, zone, locale and hash seed; what differs is a defect. The wheel is built from the source
archive, so the archive is known to build. Then: the wheel's files are git's files, and the field's checkers pass it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from release.tree import PACKAGE, ROOT, commit_time_s

#: Two builders who have nothing in common but the commit.
ONE: Mapping[str, str] = {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
ANOTHER: Mapping[str, str] = {"PYTHONHASHSEED": "2", "TZ": "Pacific/Chatham", "LC_ALL": "C"}


@dataclass(frozen=True)
class Artefacts:
    """What is given out of one version."""

    wheel: Path
    sdist: Path

    def digests(self) -> Mapping[str, str]:
        """SHA-256 by file name."""
        return {each.name: sha256_of(each) for each in (self.sdist, self.wheel)}


def sha256_of(path: Path) -> str:
    """A file's SHA-256, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def export(folder: Path, commit: str = "HEAD", root: Path = ROOT, *paths: str) -> Path:
    """Lay the files of ``commit`` (below ``paths``, if given), and nothing else, into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with _archive(commit, root, *paths) as files:
        files.extractall(folder, filter="data")
    return folder


def build(source: Path, output: Path, time_s: int, unlike: Mapping[str, str] = ONE, umask: int = 0o022) -> Artefacts:
    """Build both from the tree ``source`` into ``output``, dated ``time_s`` [s since 1970].

    Raises CalledProcessError with the builder's words where it fails.
    """
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(output), str(source)]
    env = os.environ | unlike | {"SOURCE_DATE_EPOCH": str(time_s), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(words, env=env, umask=umask, check=True, capture_output=True, text=True)
    (wheel,), (sdist,) = output.glob("*.whl"), output.glob("*.tar.gz")
    return Artefacts(wheel, sdist)


def built(folder: Path, commit: str = "HEAD", root: Path = ROOT) -> Artefacts:
    """Both artefacts of ``commit``, in ``folder``; the tree that they were built from is gone."""
    try:
        return build(export(folder / "tree", commit, root), folder / "dist", commit_time_s(root))
    finally:
        shutil.rmtree(folder / "tree")


def built_twice(folder: Path, commit: str = "HEAD", root: Path = ROOT) -> tuple[Artefacts, Artefacts]:
    """Both artefacts of ``commit`` by two unlike builders, in folders below ``folder``."""
    when = commit_time_s(root)
    one = build(export(folder / "one" / "tree", commit, root), folder / "one" / "dist", when, ONE, 0o022)
    far = folder / "another" / "place with a longer name"
    another = build(export(far / "tree", commit, root), far / "dist", when, ANOTHER, 0o077)
    return one, another


def packaged(wheel: Path) -> Mapping[str, bytes]:
    """The package's files in the wheel, by their name below ``servewise/``."""
    with zipfile.ZipFile(wheel) as files:
        inside = [each for each in files.namelist() if ".dist-info/" not in each]
        return {each.removeprefix("servewise/"): files.read(each) for each in inside}


def committed(commit: str = "HEAD", root: Path = ROOT) -> Mapping[str, bytes]:
    """The package's files as git holds them, by their name below ``src/servewise/``."""
    with _archive(commit, root, PACKAGE) as files:
        inside = [each for each in files if each.isfile()]
        return {each.name.removeprefix(f"{PACKAGE}/"): _content(files, each) for each in inside}


def _content(files: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = files.extractfile(member)
    assert content is not None
    return content.read()


@contextmanager
def _archive(commit: str, root: Path, *paths: str) -> Iterator[tarfile.TarFile]:
    with tempfile.TemporaryFile() as archive:
        subprocess.run(["git", "archive", "--format=tar", commit, *paths], cwd=root, stdout=archive, check=True)
        archive.seek(0)
        with tarfile.open(fileobj=archive) as files:
            yield files


def unlike_git(wheel: Path, commit: str = "HEAD", root: Path = ROOT) -> Iterator[str]:
    """Each file in which wheel and commit differ."""
    inside, held = packaged(wheel), committed(commit, root)
    yield from (f"{each} is in the wheel, not in git" for each in sorted(inside.keys() - held.keys()))
    yield from (f"{each} is in git, not in the wheel" for each in sorted(held.keys() - inside.keys()))
    yield from (f"{each} differs" for each in sorted(inside.keys() & held.keys()) if inside[each] != held[each])


def checked(made: Artefacts) -> Iterator[str]:
    """What check-wheel-contents and twine find wrong."""
    for words in (
        ["check_wheel_contents", str(made.wheel)],
        ["twine", "check", "--strict", str(made.wheel), str(made.sdist)],
    ):
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{words[0]}: {(done.stdout + done.stderr).strip()}"


def proven(output: Path, commit: str = "HEAD", root: Path = ROOT) -> tuple[Artefacts, list[str]]:
    """Both artefacts in ``output``, with all that is wrong with them: nothing, if all is well."""
    with tempfile.TemporaryDirectory() as scratch:
        one, another = built_twice(Path(scratch), commit, root)
        wrong = [
            f"{name} came out otherwise the second time"
            for name in one.digests()
            if one.digests()[name] != another.digests()[name]
        ]
        output.mkdir(parents=True, exist_ok=True)
        kept = Artefacts(*(Path(shutil.copy(each, output)) for each in (one.wheel, one.sdist)))
    return kept, [*wrong, *unlike_git(kept.wheel, commit, root), *checked(kept)]


def main() -> int:
    """Build, prove, and say each file's SHA-256."""
    parser = argparse.ArgumentParser(prog="python -m release.artefacts", description="Build HEAD twice and compare.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    made, wrong = proven(parser.parse_args().output)
    print("\n".join(wrong) or "\n".join(f"{digest}  {name}" for name, digest in made.digests().items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
