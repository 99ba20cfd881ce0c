"""A release, in one command; it ends with a tag on this machine and publishes nothing.

    python -m release.cut VERSION [--dry-run] [--skip STEP,...] [--pythons "3.11 3.12"]
        [--advisories FOLDER] [--workers N]

First everything that can be seen at once: the tree is clean and on main, version, changelog and locks agree, the tag is
new. Then the steps, each of which ends the release where it fails, those of a minute first: audit, licences, the tests,
the artefacts built twice, the wheel on each Python, bill of materials, checksums, tag. A step that is skipped is named
in the notes that the tag carries, so that nobody takes it for done. ``--dry-run`` does all but the tag.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import InvalidVersion, Version

from release import audit, licences, sbom
from release.artefacts import Artefacts, proven, sha256_of
from release.from_wheel import asked, each_python
from release.lock import drift
from release.tree import ROOT, git, supported, version
from release.versions import all_locked

SKIPPABLE = ("tests", "pythons", "audit")


class Refused(Exception):
    """The release cannot be made; the message says why, a line for each reason."""


@dataclass
class Release:
    """A release on its way: what was asked for, and what each step left."""

    version: str
    output: Path
    pythons: tuple[str, ...] = ()
    workers: str = "auto"
    advisories: Path | None = None
    made: Artefacts | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def tag(self) -> str:
        """The tag's name."""
        return f"v{self.version}"

    @property
    def bill(self) -> Path:
        """The bill of materials' file."""
        return self.output / f"servewise-{self.version}.cdx.json"

    @property
    def artefacts(self) -> Artefacts:
        """What was built; building comes before all that asks for it."""
        assert self.made
        return self.made


def refusals(wanted: str, root: Path = ROOT) -> Iterator[str]:
    """Each thing that can be seen at once and stands in the way of releasing ``wanted`` from ``root``."""
    yield from _of_the_version(wanted, root)
    if git("status", "--porcelain", root=root):
        yield "the tree is not clean: commit, or put away, what `git status` lists"
    if git("branch", "--show-current", root=root) != "main":
        yield "not on main"
    if git("tag", "--list", f"v{wanted}", root=root):
        yield f"the tag v{wanted} is there already"
    yield from drift(root)


def _of_the_version(wanted: str, root: Path) -> Iterator[str]:
    try:
        if str(Version(wanted)) != wanted:
            yield f"{wanted} is written {Version(wanted)}"
    except InvalidVersion:
        yield f"{wanted} is no version (PEP 440)"
    if version(root) != wanted:
        yield f"version.py says {version(root)}, not {wanted}"
    first = re.search(r"^## (\S+)(?: \((.*)\))?$", (root / "CHANGELOG.md").read_text(), re.M)
    if first is None or first[1] != wanted:
        yield f"CHANGELOG.md begins with {first[1] if first else 'nothing'}, not {wanted}"
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", first[2] or ""):
        yield f"CHANGELOG.md: {wanted} has no date, but ({first[2]})"


def run_tests(_: Release) -> str:
    """All that CI checks."""
    if subprocess.run(["make", "test"], cwd=ROOT, check=False).returncode:
        raise Refused("make test failed")
    return "make test passed"


def build(release: Release) -> str:
    """Wheel and source archive of HEAD, twice."""
    release.made, wrong = proven(release.output)
    if wrong:
        raise Refused("\n".join(wrong))
    return "built twice to the same bytes; the wheel holds git's files; checkers passed"


def try_pythons(release: Release) -> str:
    """The wheel on each Python."""
    wanted = asked(
        ["--workers", release.workers, *(["--pythons", " ".join(release.pythons)] if release.pythons else [])]
    )
    with tempfile.TemporaryDirectory() as scratch:
        lines = list(each_python(release.artefacts.wheel.resolve(), Path(scratch), wanted))
    if not all(well for well, _ in lines):
        raise Refused("\n".join(line for well, line in lines if not well))
    left_out = [each for each in supported() if each not in wanted.pythons]
    return "\n".join([line for _, line in lines] + [f"NOT TRIED: Python {each}" for each in left_out])


def check_licences(_: Release) -> str:
    """Every licence is known and allowed, and the list is this one."""
    found = licences.all_licences()
    wrong = [*licences.refused(found)]
    if not wrong and licences.listing(found) != licences.LIST.read_text():
        wrong = ["THIRD_PARTY_LICENSES.md is not up to date: make licences"]
    if wrong:
        raise Refused("\n".join(wrong))
    return "every licence known and allowed"


def write_bill(release: Release) -> str:
    """The bill of materials of this very wheel."""
    release.bill.write_text(sbom.text(release.artefacts.wheel))
    return "bill of materials written (CycloneDX 1.6)"


def run_audit(release: Release) -> str:
    """No known vulnerability in what is locked; what could not be asked about counts as a failure."""
    on_disk, locked = release.advisories, all_locked()
    found = audit.on_disk(on_disk, locked) if on_disk else audit.asking("pypi", locked)
    if found.exit_code:
        raise Refused(str(found))
    return str(found)


def write_checksums(release: Release) -> str:
    """SHA256SUMS of all that is given out, as `sha256sum --check` reads it."""
    digests = {**release.artefacts.digests(), release.bill.name: sha256_of(release.bill)}
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    (release.output / "SHA256SUMS").write_text("".join(lines))
    return "checksums written"


STEPS: Mapping[str, Callable[[Release], str]] = {
    "audit": run_audit,
    "licences": check_licences,
    "tests": run_tests,
    "artefacts": build,
    "pythons": try_pythons,
    "bill": write_bill,
    "checksums": write_checksums,
}


def steps(release: Release, skip: frozenset[str]) -> Iterator[str]:
    """Go through the steps, saying what each showed or that it was skipped. Raises Refused at the first failure."""
    for name, step in STEPS.items():
        said = f"SKIPPED: {name}" if name in skip else step(release)
        release.notes.append(said)
        yield said


def tag(release: Release, root: Path = ROOT) -> None:
    """Tag HEAD, with the notes and the checksums as the tag's message."""
    sums = [f"{digest}  {name}" for name, digest in release.artefacts.digests().items()]
    message = "\n".join([f"servewise {release.version}", "", *release.notes, "", *sums])
    git("tag", "--annotate", "--message", message, release.tag, root=root)


def _command() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m release.cut", description="Make a release; publish nothing.")
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="all but the tag")
    parser.add_argument("--skip", default="", help=f"of {', '.join(SKIPPABLE)}; named in the tag's notes")
    parser.add_argument("--pythons", default="", help="try the wheel on these alone")
    parser.add_argument("--advisories", type=Path, metavar="FOLDER", help="audit by OSV records on disk")
    parser.add_argument("--workers", default="auto", help="pytest's processes")
    wanted = parser.parse_args()
    wanted.skip = frozenset(wanted.skip.replace(",", " ").split())
    if wanted.skip - set(SKIPPABLE):
        parser.error(f"only {', '.join(SKIPPABLE)} can be skipped")
    return wanted


def main() -> int:
    """Make the release, or say why it cannot be made."""
    wanted = _command()
    output, pythons = ROOT / "dist" / wanted.version, tuple(wanted.pythons.split())
    release = Release(wanted.version, output, pythons, wanted.workers, wanted.advisories)
    wrong = list(refusals(wanted.version))
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    try:
        for line in steps(release, wanted.skip):
            print(line, flush=True)
    except Refused as refused:
        print(f"no release: {refused}", file=sys.stderr)
        return 1
    if not wanted.dry_run:
        tag(release)
    print(f"{'would be tagged' if wanted.dry_run else 'tagged'} {release.tag}; nothing is published, see RELEASING.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
