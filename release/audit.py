"""Known vulnerabilities of all that is locked.

    python -m release.audit                        ask PyPI, by pip-audit
    python -m release.audit --service osv          ask OSV
    python -m release.audit --advisories FOLDER    ask no one: a checkout of github.com/pypa/advisory-database

Ends with 0 when every package was asked about and none has a known vulnerability, 1 when one has, and 2 when one could
not be asked about: pip-audit itself then says "No known vulnerabilities found" and ends with 0, which is no audit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from release.advisories import Finding, read
from release.versions import versions


@dataclass(frozen=True)
class Audit:
    """Of how many packages was asked, what was found, and which could not be asked about, and why."""

    against: str
    asked: int
    found: tuple[Finding, ...]
    unasked: Mapping[str, str]

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
            why = sorted(set(self.unasked.values()))
            lines.append(
                f"NOT AUDITED: {len(self.unasked)} of {total} packages could not be asked about, e.g. {why[:1]}"
            )
        lines.append(
            f"{self.asked} of {total} packages asked about ({self.against}): {len(self.found)} known vulnerabilities"
        )
        return "\n".join(lines)


def on_disk(folder: Path, at: Mapping[str, str]) -> Audit:
    """The audit against advisories on disk."""
    snapshot = read(folder)
    against = f"{len(snapshot.records)} advisories, the newest of {snapshot.newest}"
    return Audit(against, len(at), tuple(snapshot.findings(at)), {})


def asking(service: str, at: Mapping[str, str]) -> Audit:
    """The audit by pip-audit, which asks ``service`` ("pypi" or "osv")."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "locked.txt"
        listed.write_text("".join(f"{name}=={version}\n" for name, version in at.items()))
        options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
        words = [sys.executable, "-m", "pip_audit", "-s", service, "-r", str(listed), *options]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        return judged(service, json.loads(done.stdout)["dependencies"], at)
    except (json.JSONDecodeError, KeyError):
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return Audit(service, 0, (), dict.fromkeys(at, last))


def judged(service: str, dependencies: list[dict[str, Any]], at: Mapping[str, str]) -> Audit:
    """What pip-audit's JSON means: a skipped package was not asked about, and one that it leaves out neither."""
    said = {canonicalize_name(each["name"]): each for each in dependencies}
    skipped = {name: str(each["skip_reason"]) for name, each in said.items() if "skip_reason" in each}
    left_out = dict.fromkeys(at.keys() - said.keys(), "left out by pip-audit")
    found = tuple(
        Finding(name, at[name], each["id"], ", ".join(each["fix_versions"]) or None)
        for name, one in said.items()
        for each in one.get("vulns", ())
    )
    unasked = skipped | left_out
    return Audit(service, len(at) - len(unasked), found, unasked)


def main() -> int:
    """Audit, and say what was asked."""
    parser = argparse.ArgumentParser(
        prog="python -m release.audit", description="Known vulnerabilities of what is locked."
    )
    parser.add_argument("--service", choices=("pypi", "osv"), default="pypi")
    parser.add_argument("--advisories", type=Path, metavar="FOLDER", help="OSV records on disk, instead of a service")
    wanted = parser.parse_args()
    audit = on_disk(wanted.advisories, versions()) if wanted.advisories else asking(wanted.service, versions())
    print(audit)
    return audit.exit_code


if __name__ == "__main__":
    sys.exit(main())
