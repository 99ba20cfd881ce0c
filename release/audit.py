"""Known vulnerabilities of all that is locked, for every Python and system.

    python -m release.audit                        ask PyPI, by pip-audit
    python -m release.audit --service osv          ask OSV, or by --osv-url another service that speaks as it does
    python -m release.audit --advisories FOLDER    ask no one: a checkout of github.com/pypa/advisory-database

Ends with 0 when every package was asked about and none has a known vulnerability, 1 when one has, and 2 when one could
not be asked about: pip-audit itself then says "No known vulnerabilities found" and ends with 0, which is no audit.
Each time one package more is asked about that is known to be vulnerable: a service that does not say so says nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from release.advisories import Finding, read
from release.newest import INDEX, told_of
from release.versions import Locked, all_locked

#: Given up in 2013, so its newest release stays the one in which PYSEC-2017-94 and PYSEC-2018-97 are.
CONTROL = Locked("pycrypto", "2.6.1")
UNBELIEVED = f"of {CONTROL}, which is vulnerable (PYSEC-2018-97), nothing was told, so this is not believed either"


@dataclass(frozen=True)
class Audit:
    """Of how many packages was asked, what was found, and which could not be asked about, and why."""

    against: str
    asked: int
    found: tuple[Finding, ...]
    unasked: Mapping[Locked, str]

    @property
    def exit_code(self) -> int:
        """0 clean, 1 vulnerable, 2 not fully asked."""
        if self.found:
            return 1
        return 2 if self.unasked or not self.asked else 0

    def __str__(self) -> str:
        total = self.asked + len(self.unasked)
        lines = [str(each) for each in self.found]
        if self.unasked or not self.asked:
            lines += [
                f"NOT AUDITED: {len(self.unasked)} of {total} packages could not be asked about",
                *self._reasons(),
            ]
        found = f"{len(self.found)} known vulnerabilities"
        return "\n".join([*lines, f"{self.asked} of {total} packages asked about ({self.against}): {found}"])

    def _reasons(self) -> Iterator[str]:
        """A line for each package; where all fail, for the first few."""
        for each, why in sorted(self.unasked.items())[: None if self.asked else 3]:
            yield f"  {each}: {why}"


def on_disk(folder: Path, at: Sequence[Locked]) -> Audit:
    """The audit against advisories on disk."""
    snapshot = read(folder)
    against = f"{len(snapshot.records)} advisories, the newest of {snapshot.newest}"
    return Audit(against, len(at), tuple(snapshot.findings(at)), {})


def asking(service: str, at: Sequence[Locked], *, osv_url: str | None = None, index: str = INDEX) -> Audit:
    """The audit by pip-audit, which asks ``service`` ("pypi", or "osv" at ``osv_url``).

    What PyPI's pages of releases do not tell is looked for on the page of its project, below ``index``.
    """
    where = ["--osv-url", osv_url] if osv_url else []
    said = [judged(service, _said([*where, "-s", service], each), each) for each in _rounds(at)]
    merged = Audit(
        service,
        sum(each.asked for each in said),
        tuple(found for each in said for found in each.found),
        {locked: why for each in said for locked, why in each.unasked.items()},
    )
    return by_newest(merged, index) if service == "pypi" and merged.unasked else merged


def _rounds(at: Sequence[Locked]) -> Iterator[tuple[Locked, ...]]:
    """One version of each package at a time, as pip-audit takes them, and the control each time."""
    rounds: defaultdict[int, list[Locked]] = defaultdict(list)
    seen: defaultdict[str, int] = defaultdict(int)
    for each in at:
        rounds[seen[each.name]].append(each)
        seen[each.name] += 1
    yield from ((*each, CONTROL) for each in rounds.values())


def _said(options: Sequence[str], at: Sequence[Locked]) -> list[dict[str, Any]] | str:
    """The packages in pip-audit's words, or its last words where it gave up; none of it from its cache."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "locked.txt"
        listed.write_text("".join(f"{each.name}=={each.version}\n" for each in at))
        alone = ["--no-deps", "--disable-pip", "--cache-dir", folder, "--progress-spinner", "off", "--format", "json"]
        words = [sys.executable, "-m", "pip_audit", *options, "-r", str(listed), *alone]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        return (done.stderr.strip().splitlines() or ["no answer"])[-1]
    return packages


def judged(service: str, packages: list[dict[str, Any]] | str, at: Sequence[Locked]) -> Audit:
    """What pip-audit's words mean: a skipped package was not asked about, and one that it leaves out neither."""
    wanted = [each for each in at if each != CONTROL]
    if isinstance(packages, str):
        return Audit(service, 0, (), dict.fromkeys(wanted, packages))
    said = {str(canonicalize_name(each["name"])): each for each in packages}
    believed = CONTROL not in at or bool(said.get(CONTROL.name, {}).get("vulns"))
    unasked = {each: why for each in wanted if (why := _why_not(said.get(each.name), believed=believed))}
    found = dict.fromkeys(  # pip-audit tells what is known under two names twice
        Finding(*locked, each["id"], ", ".join(each["fix_versions"]) or None)
        for locked in wanted
        for each in said.get(locked.name, {}).get("vulns", ())
    )
    return Audit(service, len(wanted) - len(unasked), tuple(found), unasked)


def _why_not(said: Mapping[str, Any] | None, *, believed: bool) -> str | None:
    if said is None:
        return "left out by pip-audit"
    if "skip_reason" in said:
        return str(said["skip_reason"])
    return None if believed or said["vulns"] else UNBELIEVED


def by_newest(audit: Audit, index: str) -> Audit:
    """The audit, with what the project's pages tell of those that could not be asked about."""
    told = dict(told_of([*audit.unasked, CONTROL], index))
    control = told.pop(CONTROL)
    if isinstance(control, str) or not control:
        return audit
    answered = {each: known for each, known in told.items() if not isinstance(known, str)}
    return replace(
        audit,
        against=f"{audit.against}; {len(answered)} by the page of their newest release",
        asked=audit.asked + len(answered),
        found=(*audit.found, *(each for known in answered.values() for each in known)),
        unasked={each: why for each, why in told.items() if isinstance(why, str)},
    )


def main() -> int:
    """Audit, and say what was asked."""
    parser = argparse.ArgumentParser(
        prog="python -m release.audit", description="Known vulnerabilities of what is locked."
    )
    parser.add_argument("--service", choices=("pypi", "osv"), default="pypi")
    parser.add_argument("--osv-url", metavar="URL", help="where OSV's v1/query is asked, instead of OSV's own")
    parser.add_argument("--advisories", type=Path, metavar="FOLDER", help="OSV records on disk, instead of a service")
    wanted = parser.parse_args()
    if wanted.advisories:
        audit = on_disk(wanted.advisories, all_locked())
    else:
        audit = asking("osv" if wanted.osv_url else wanted.service, all_locked(), osv_url=wanted.osv_url)
    print(audit)
    return audit.exit_code


if __name__ == "__main__":
    sys.exit(main())
