"""Licences of all that comes along, from the packages' own metadata, against the policy in licences.toml.

    python -m release.licences            write THIRD_PARTY_LICENSES.md
    python -m release.licences --check    fail on an unknown licence, or one that the policy does not allow

A licence is read from PEP 639's expression, else from the field, else from the classifiers, else (where those say only
"BSD") from the wording of the licence file. What none of them settles is unknown, and fails: a person then reads it and
writes down the finding and its reason in licences.toml.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from release.closure import Member, closure
from release.lock import CI_EXTRAS
from release.tree import ROOT, project, requirements, user_extras
from release.versions import versions

LIST = ROOT / "THIRD_PARTY_LICENSES.md"
POLICY: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "licences.toml").read_text())
SPDX = get_spdx_licensing()


@dataclass(frozen=True)
class Licence:
    """A package's licence as an SPDX expression, and where it was read; ``None`` where nothing settles it."""

    expression: str | None
    read_from: str


def licence_of(dist: Distribution) -> Licence:
    """What the package's metadata says, or what a person decided where it does not say."""
    decided = POLICY["decided"].get(dist.name.lower())
    if decided:
        return Licence(decided["expression"], "its files, by a person")
    for where, words in _said(dist):
        expression = _spdx(words)
        if expression:
            return Licence(expression, where)
    return Licence(None, "nothing")


def _said(dist: Distribution) -> Iterator[tuple[str, str]]:
    said = dist.metadata.json
    yield "expression", str(said.get("license_expression", ""))
    yield "field", str(said.get("license", ""))
    licences = [each.rpartition(" :: ")[2] for each in said.get("classifier", ()) if each.startswith("License ::")]
    if len(licences) == 1:
        yield "classifier", licences[0]
    yield "licence file", _bsd(dist)


def _spdx(words: str) -> str | None:
    try:
        return str(canonicalize_license_expression(POLICY["spelt"].get(words, words)))
    except InvalidLicenseExpression:
        return None


def _bsd(dist: Distribution) -> str:
    """Which BSD licence a package has that says no more than "BSD": only the third clause speaks of names."""
    files = [each for each in dist.files or () if re.search("LICEN[CS]E|COPYING", each.name, re.I)]
    texts = [" ".join(each.read_text().split()) for each in files if not each.name.endswith(".py")]
    if not any("Redistributions of source code must retain" in each for each in texts):
        return ""
    third = re.compile("(Neither the names? of|The names? of).{0,200}(endorse|promote)", re.I)
    return "BSD-3-Clause" if any(map(third.search, texts)) else "BSD-2-Clause"


def allows(expression: str, allowed: frozenset[str]) -> bool:
    """Whether the policy allows an SPDX expression: of ``OR`` one side is enough, of ``AND`` both are needed.

    >>> allows("MIT OR GPL-3.0-only", frozenset({"MIT"})), allows("MIT AND GPL-3.0-only", frozenset({"MIT"}))
    (True, False)
    """
    try:
        return _allows(SPDX.parse(expression), allowed)
    except ExpressionError:
        return False


def _allows(node: Any, allowed: frozenset[str]) -> bool:
    if node.isliteral:  # an operand, or an operand WITH its exception
        return node.render() in allowed
    sides = [_allows(each, allowed) for each in node.args]
    return any(sides) if isinstance(node, SPDX.OR) else all(sides)


def scopes() -> Mapping[str, Mapping[str, Member]]:
    """What comes along, by who installs it: the core, each extra beyond the core, the tools beyond those."""
    core = closure(requirements())
    extras = {each: closure(requirements((each,))) for each in user_extras()}
    users = core.keys() | {name for each in extras.values() for name in each}
    tools = closure(requirements(CI_EXTRAS))
    beyond = {f"extra {extra}": _without(members, core.keys()) for extra, members in extras.items()}
    return {"core": core, **beyond, "tools": _without(tools, users)}


def _without(members: Mapping[str, Member], names: set[str] | Any) -> Mapping[str, Member]:
    return {name: each for name, each in members.items() if name not in names}


def refused(found: Mapping[str, Mapping[str, Licence]]) -> Iterator[str]:
    """Each package whose licence is unknown, or not allowed where it is used."""
    for scope, licences in found.items():
        allowed = frozenset(POLICY["allowed"]) | frozenset(POLICY["tools"] if scope == "tools" else ())
        for name, licence in licences.items():
            if licence.expression is None:
                yield f"{scope}: {name}: licence unknown; read it and decide in release/licences.toml"
            elif not allows(licence.expression, allowed):
                yield f"{scope}: {name}: {licence.expression} is not allowed by release/licences.toml"


def all_licences() -> Mapping[str, Mapping[str, Licence]]:
    """The licence of each package, by scope."""
    return {
        scope: {name: licence_of(each.distribution) for name, each in members.items()}
        for scope, members in scopes().items()
    }


def listing(found: Mapping[str, Mapping[str, Licence]]) -> str:
    """The list as a page, with the locked versions."""
    parts = [HEAD.format(python=project()["requires-python"].removeprefix(">="))]
    for scope, licences in found.items():
        rows = [
            f"| {name} | {versions()[name]} | {each.expression} | {each.read_from} |" for name, each in licences.items()
        ]
        parts += [
            f"\n## {scope.capitalize()}\n",
            *(
                ["| package | version | licence | read from |", "|---|---|---|---|", *rows]
                if rows
                else ["Nothing beyond the core."]
            ),
        ]
    return "\n".join(parts) + "\n"


HEAD = """# Licences of what comes along

servewise is under Apache-2.0 (`LICENSE`). It holds no other project's code; its traces and texts are named with their
sources and licences in `src/servewise/workload/data/SOURCES.md` and `src/servewise/probe/quantise/texts/README.md`.

This lists what `pip install servewise` brings besides, as locked in `locks/ci.txt` for Python {python} on Linux x86-64;
made by `make licences`, held to the policy in `release/licences.toml` by the tests. An extra lists what it adds to the
core. A CUDA build of torch brings NVIDIA's libraries under NVIDIA's own terms, which are no part of this list."""


def main() -> int:
    """Write the list, or only check it."""
    found = all_licences()
    wrong = list(refused(found))
    if not wrong and sys.argv[1:] != ["--check"]:
        LIST.write_text(listing(found))
    known = sum(len(each) for each in found.values())
    print("\n".join(wrong) or f"{known} packages, each licence known and allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
