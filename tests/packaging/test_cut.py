"""A release: refused for each reason that can be seen, made whole, tagged here, published nowhere."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from release.artefacts import Artefacts
from release.cut import Refused, Release, refusals, run_audit, steps, tag, try_pythons
from release.tree import ROOT, git, supported, version
from release.versions import all_locked
from tests.packaging.index import DATA

V = version()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of HEAD on main, ready to be released."""
    root = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--no-local", "--depth", "1", ROOT.as_uri(), str(root)], check=True)
    git("checkout", "-q", "-B", "main", root=root)
    for name, value in (("user.name", "someone"), ("user.email", "someone@example.org")):
        git("config", name, value, root=root)
    changelog = root / "CHANGELOG.md"
    changelog.write_text(f"# Changelog\n\n## {V} (2026-12-01)\n\n" + changelog.read_text().partition("\n## ")[2])
    commit(root)
    return root


def commit(root: Path) -> None:
    """Commit all that is there."""
    git("commit", "-q", "--all", "--allow-empty", "--message", "ready", root=root)


def respell(path: Path, old: str, new: str) -> None:
    """Write ``new`` for ``old``, which must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def lie_dirty(root: Path) -> None:
    """Leave a file that nobody committed."""
    (root / "left.txt").write_text("")


def on_a_branch(root: Path) -> None:
    """Work elsewhere than on main."""
    git("checkout", "-q", "-b", "topic", root=root)


def tagged_before(root: Path) -> None:
    """Have the tag already."""
    git("tag", f"v{V}", root=root)


def undated(root: Path) -> None:
    """Leave the changelog unreleased."""
    respell(root / "CHANGELOG.md", "2026-12-01", "unreleased")
    commit(root)


def other_changelog(root: Path) -> None:
    """Let the changelog speak of another version."""
    respell(root / "CHANGELOG.md", f"## {V}", "## 99.0")
    commit(root)


def unlocked(root: Path) -> None:
    """Ask for what is not locked."""
    respell(root / "pyproject.toml", '  "pyyaml>=6",', '  "pyyaml>=99",')
    commit(root)


REASONS: dict[str, Callable[[Path], None]] = {
    "the tree is not clean": lie_dirty,
    "not on main": on_a_branch,
    "is there already": tagged_before,
    "has no date": undated,
    "begins with 99.0": other_changelog,
    "pyyaml is locked at": unlocked,
}


def test_nothing_stands_in_the_way(clone: Path) -> None:
    """A clean tree on main with a dated changelog is refused nothing."""
    assert list(refusals(V, clone)) == []


@pytest.mark.parametrize("reason", REASONS)
def test_what_stands_in_the_way_is_told(clone: Path, reason: str) -> None:
    """Each thing that must not be released is refused, by its own reason alone (and each Python for a lock)."""
    REASONS[reason](clone)
    said = list(refusals(V, clone))

    assert said
    assert all(reason in each for each in said)


def test_the_version_is_the_one_asked_for(clone: Path) -> None:
    """Another version than the package's is refused, and so is what is no version or another spelling of one."""
    assert f"version.py says {V}, not 99.1" in list(refusals("99.1", clone))
    assert any("no version" in each for each in refusals("one", clone))
    assert any("is written 1.0" in each for each in refusals("v1.0", clone))


def test_a_step_that_fails_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is done after the first failure, and what was skipped is said."""

    def fails(_: Release) -> str:
        raise Refused("the wheel came out otherwise")

    monkeypatch.setattr("release.cut.STEPS", {"tests": fails, "artefacts": fails, "bill": fails})
    release = Release(V, tmp_path)

    with pytest.raises(Refused, match="otherwise"):
        list(steps(release, frozenset({"tests"})))
    assert release.notes == ["SKIPPED: tests"]


def test_a_python_that_was_left_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release tried on some of the promised Pythons alone says on which it was not."""
    monkeypatch.setattr("release.cut.each_python", lambda *_: iter([(True, "Python 3.11: well")]))
    made = Artefacts(tmp_path / "a.whl", tmp_path / "a.tar.gz")

    said = try_pythons(Release(V, tmp_path, ("3.11",), made=made)).splitlines()
    assert said == ["Python 3.11: well", *(f"NOT TRIED: Python {each}" for each in supported() if each != "3.11")]
    assert try_pythons(Release(V, tmp_path, made=made)) == "Python 3.11: well"


def test_an_advisory_on_disk_stops_a_release(tmp_path: Path) -> None:
    """Published advisories of older versions let the locked ones pass; one that holds for numpy refuses the release."""
    many = len(all_locked())
    said = run_audit(Release(V, tmp_path, advisories=DATA))
    assert said.startswith(f"{many} of {many} packages asked about (4 advisories, ")

    held = {
        "package": {"name": "numpy", "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}],
    }
    (tmp_path / "MADE-1.json").write_text(json.dumps({"id": "MADE-1", "affected": [held]}))
    with pytest.raises(Refused, match=r"numpy .*: MADE-1; fixed in no release told"):
        run_audit(Release(V, tmp_path, advisories=tmp_path))


@pytest.mark.slow
def test_a_release_in_one_command(clone: Path) -> None:
    """The command leaves wheel, archive, bill and checksums that agree; a dry run leaves no tag, the tag names all."""
    words = [sys.executable, "-m", "release.cut", V, "--dry-run", "--skip", "tests,pythons,audit"]
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True, check=False)
    dist = clone / "dist" / V
    wheel = dist / f"servewise-{V}-py3-none-any.whl"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()

    assert done.returncode == 0, done.stderr
    assert f"would be tagged v{V}; nothing is published" in done.stdout
    assert "SKIPPED: audit" in done.stdout
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=dist, check=True)
    summed = {line.split("  ")[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    assert summed == {each.name for each in dist.iterdir()} - {"SHA256SUMS"}
    bill = json.loads((dist / f"servewise-{V}.cdx.json").read_text())
    assert bill["metadata"]["component"]["hashes"][0]["content"] == digest
    assert git("tag", "--list", root=clone) == ""

    made = Artefacts(wheel, dist / f"servewise-{V}.tar.gz")
    release = Release(V, dist, made=made, notes=["SKIPPED: audit"])
    tag(release, clone)
    message = git("tag", "--list", "--format=%(contents)", f"v{V}", root=clone)
    assert digest in message
    assert "SKIPPED: audit" in message
    assert list(refusals(V, clone)) == [f"the tag v{V} is there already"]
