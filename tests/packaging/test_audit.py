"""The audit: what is known to be vulnerable is found, and "nothing found" is said only of what was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from release.advisories import Snapshot, read
from release.audit import Audit, judged, on_disk
from release.versions import versions

# As published by the Python Packaging Advisory Database (github.com/pypa/advisory-database), less the prose.
URLIZE = """
id: PYSEC-2021-66
affected:
- package: {name: jinja2, ecosystem: PyPI}
  ranges:
  - type: ECOSYSTEM
    events: [{introduced: "0"}, {fixed: 2.11.3}]
  versions: [2.0rc1, "2.0", "2.10", 2.11.2]
modified: "2021-03-22T16:34:00Z"
"""


def advisory(*events: dict[str, str], listed: tuple[str, ...] = (), **more: str) -> Snapshot:
    """One record of a package of the test's own."""
    affected = {
        "package": {"name": "Made_Up", "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": list(events)}],
        "versions": list(listed),
    }
    return Snapshot(({"id": "MADE-1", "affected": [affected], **more},), "2026-01-01")


def test_a_published_advisory_is_found(tmp_path: Path) -> None:
    """Jinja2 before 2.11.3 is found by its published advisory, with the release that mends it; later ones are not."""
    (tmp_path / "PYSEC-2021-66.yaml").write_text(URLIZE)
    old = on_disk(tmp_path, {"jinja2": "2.11.2", "numpy": "2.4.6"})

    assert [str(each) for each in old.found] == ["jinja2 2.11.2: PYSEC-2021-66; fixed in 2.11.3"]
    assert old.exit_code == 1
    assert "the newest of 2021-03-22" in str(old)
    assert on_disk(tmp_path, {"jinja2": "2.11.3"}).exit_code == 0


@pytest.mark.parametrize(
    ("version", "affected"),
    [("1.0", False), ("1.1", True), ("1.9", True), ("2.0", False), ("3.0", True), ("3.5", True), ("3.6", False)],
)
def test_ranges_open_and_close(version: str, affected: bool) -> None:
    """A version is affected from ``introduced`` to before ``fixed``, and up to ``last_affected`` with it (OSV 1.x)."""
    events = ({"introduced": "1.1"}, {"fixed": "2.0"}, {"introduced": "3.0"}, {"last_affected": "3.5"})

    assert bool(list(advisory(*events).findings({"made-up": version}))) is affected


def test_a_listed_version_is_affected_without_a_range() -> None:
    """A version named in the list is affected, however it is spelt."""
    assert list(advisory(listed=("1.2.0", "2004d")).findings({"made-up": "1.2"}))


def test_a_withdrawn_advisory_holds_no_more() -> None:
    """What its authors took back is no finding; what speaks of another ecosystem is none either."""
    assert not list(advisory({"introduced": "0"}, withdrawn="2026-01-02").findings({"made-up": "1"}))
    other = yaml.safe_load(URLIZE.replace("PyPI", "npm"))
    assert not list(Snapshot((other,), "").findings({"jinja2": "2.0"}))


def test_an_empty_folder_is_no_audit(tmp_path: Path) -> None:
    """Advisories that are not there are refused, rather than found not to hold."""
    with pytest.raises(ValueError, match="no advisory"):
        read(tmp_path)


def test_what_was_skipped_was_not_asked() -> None:
    """pip-audit skips what its service does not know and calls that clean; here it is said, and the exit code is 2."""
    said: list[dict[str, Any]] = [
        {"name": "Jinja2", "skip_reason": "Dependency not found on PyPI"},
        {"name": "click", "version": "8", "vulns": []},
    ]
    audit = judged("pypi", said, {"jinja2": "3.1.6", "click": "8"})

    assert audit.exit_code == 2
    assert str(audit).startswith("NOT AUDITED: 1 of 2")
    assert judged("pypi", said[1:], {"jinja2": "3.1.6", "click": "8"}).exit_code == 2
    assert judged("pypi", said[1:], {"click": "8"}).exit_code == 0
    assert Audit("pypi", 0, (), {}).exit_code == 2


def test_what_pip_audit_finds_is_found() -> None:
    """A vulnerability counts before what could not be asked, and names what mends it."""
    said = [{"name": "jinja2", "version": "2.0", "vulns": [{"id": "PYSEC-2021-66", "fix_versions": ["2.11.3"]}]}]
    audit = judged("pypi", said, {"jinja2": "2.0", "numpy": "2"})

    assert audit.exit_code == 1
    assert "jinja2 2.0: PYSEC-2021-66; fixed in 2.11.3" in str(audit)


def test_all_that_comes_along_is_audited() -> None:
    """The audit is of every locked package and of torch, which has no lock."""
    assert {"torch", "numpy", "pytest", "starlette"} <= versions().keys()
    assert versions()["torch"] == "2.13.0"
