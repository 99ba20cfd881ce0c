"""What an index tells of the newest release of a project, known vulnerabilities among it.

Some networks reach a project's page and not that of each release, which pip-audit asks for: it then skips everything.
The page answers for those packages alone that are locked at their newest release.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from packaging.version import InvalidVersion, Version

from release.advisories import Finding
from release.versions import Locked

#: Where pip-audit asks as well; its page of a project is ``NAME/json``.
INDEX = "https://pypi.org/pypi"
AT_ONCE = 4
TIMEOUT_S = 30.0

#: What is known of a package, or why nothing could be asked.
Told = tuple[Finding, ...] | str


def told_of(at: Iterable[Locked], index: str = INDEX) -> Mapping[Locked, Told]:
    """What ``index`` tells of each."""
    asked = tuple(at)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(asked, pool.map(lambda each: _told(each, index), asked), strict=True))


def _told(locked: Locked, index: str) -> Told:
    try:
        page = _page(f"{index}/{locked.name}/json")
        newest, known = Version(page["info"]["version"]), page["vulnerabilities"]
        if newest != Version(locked.version):
            return f"the index tells of the newest release alone, {newest}"
        return tuple(_findings(locked, known))
    except (OSError, ValueError, KeyError, TypeError, InvalidVersion) as error:
        return f"the index's page of it cannot be read: {type(error).__name__}: {error}"


def _page(address: str) -> Any:
    opener = urllib.request.build_opener()  # urlopen keeps the proxy of its first call
    with opener.open(address, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def _findings(locked: Locked, known: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Each vulnerability once: the index lists it under each of its names."""
    told: set[str] = set()
    for each in known:
        if not each.get("withdrawn") and not {each["id"], *each["aliases"]} & told:
            told |= {each["id"], *each["aliases"]}
            yield Finding(*locked, each["id"], ", ".join(each["fixed_in"]) or None)
