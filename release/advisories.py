"""Advisories on disk: a checkout of the Python Packaging Advisory Database, or any folder of OSV records.

The format is OSV 1.x (ossf.github.io/osv-schema): a version is affected where it is listed, or where it lies in a range
from ``introduced`` to before ``fixed`` (or up to ``last_affected``). Ranges of commits are not read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from release.versions import Locked


@dataclass(frozen=True)
class Finding:
    """An advisory that holds for a package as it is locked. ``fixed``: the first version without it, if one is told."""

    name: str
    version: str
    advisory: str
    fixed: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.version}: {self.advisory}; fixed in {self.fixed or 'no release told'}"


@dataclass(frozen=True)
class Snapshot:
    """Advisories as they stood when the newest of them was changed, ``newest`` [ISO date]."""

    records: tuple[Mapping[str, Any], ...]
    newest: str

    def findings(self, at: Iterable[Locked]) -> Iterator[Finding]:
        """What holds for those packages at those versions; what was withdrawn does not."""
        versions = defaultdict(list)
        for name, version in at:
            versions[name].append(version)
        for record in self.records:
            if not record.get("withdrawn"):
                yield from _findings(record, versions)


def read(folder: Path) -> Snapshot:
    """Every record below ``folder``. Raises ValueError where there is none: nothing asked is no answer."""
    loaders: dict[str, Callable[[str], Any]] = {".yaml": _yaml, ".json": json.loads}
    paths = [each for each in sorted(folder.rglob("*")) if each.suffix in loaders]
    found = [loaders[each.suffix](each.read_text()) for each in paths]
    records = tuple(each for each in found if isinstance(each, dict) and "affected" in each)
    if not records:
        raise ValueError(f"{folder} holds no advisory")
    return Snapshot(records, max(str(each.get("modified", ""))[:10] for each in records))


def _yaml(text: str) -> Any:
    """By the C library where PyYAML was built with it: the database has thousands of files."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _findings(record: Mapping[str, Any], versions: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    for affected in record["affected"]:
        name = canonicalize_name(affected.get("package", {}).get("name", ""))
        if affected.get("package", {}).get("ecosystem") != "PyPI":
            continue
        ranges = [each["events"] for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM"]
        for version in map(Version, versions.get(name, ())):
            if _listed(version, affected.get("versions", ())) or any(_within(version, each) for each in ranges):
                yield Finding(name, str(version), record["id"], _fixed(version, ranges))


def _listed(version: Version, listed: Sequence[str]) -> bool:
    return any(version == each for each in map(_version, listed) if each)


def _version(text: str) -> Version | None:
    try:
        return Version(str(text))
    except InvalidVersion:
        return None  # old names such as "2004d", which no lock can hold


def _within(version: Version, events: Sequence[Mapping[str, str]]) -> bool:
    """Whether the events up to ``version``, in order, leave it affected."""
    inside = False
    for kind, at in sorted(((kind, at) for each in events for kind, at in each.items()), key=_place):
        bound = _bound(at)
        if kind == "introduced" and version >= bound:
            inside = True
        elif (kind == "fixed" and version >= bound) or (kind == "last_affected" and version > bound):
            inside = False
    return inside


def _place(event: tuple[str, str]) -> tuple[Version, bool]:
    return _bound(event[1]), event[0] != "fixed"


def _bound(at: str) -> Version:
    return Version("0.dev0") if str(at) == "0" else Version(str(at))


def _fixed(version: Version, ranges: Sequence[Sequence[Mapping[str, str]]]) -> str | None:
    later = [_bound(each["fixed"]) for events in ranges for each in events if "fixed" in each]
    return str(min((each for each in later if each > version), default="")) or None
