"""Licences: each package that comes along has one that is known, and allowed where it is used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from release.licences import LIST, POLICY, Licence, all_licences, allows, licence_of, listing, refused, scopes
from release.tree import supported

NEITHER = (
    "Redistributions of source code must retain the notice. Neither the name of X nor its contributors may endorse"
)
ALLOWED = frozenset(POLICY["allowed"])


@pytest.fixture(scope="module")
def found() -> Mapping[str, Mapping[str, Licence]]:
    """The licences of all that is installed here."""
    return all_licences()


def package(folder: Path, metadata: str, licence: str = "") -> PathDistribution:
    """An installed package of the test's own, with ``metadata`` and the text of its licence file."""
    info = folder / "made-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: made\nVersion: 1.0\n{metadata}\n")
    (info / "LICENSE").write_text(licence)
    (info / "RECORD").write_text("made-1.0.dist-info/LICENSE,,\n")
    return PathDistribution(info)


def test_every_licence_is_known_and_allowed(found: Mapping[str, Mapping[str, Licence]]) -> None:
    """Nothing that comes along, for users or for the tools, has an unknown licence or one that the policy refuses."""
    assert list(refused(found)) == []
    assert {"numpy", "click", "jinja2"} <= found["core"].keys()


def test_the_core_brings_no_copyleft(found: Mapping[str, Mapping[str, Licence]]) -> None:
    """Whoever installs the core alone gets permissive licences only, not even MPL."""
    assert all(allows(str(each.expression), ALLOWED - {"MPL-2.0"}) for each in found["core"].values())


def test_the_core_is_light() -> None:
    """The core brings neither torch nor ray nor any HTTP client."""
    assert not {"torch", "ray", "transformers", "requests", "httpx", "aiohttp"} & scopes()["core"].keys()


@pytest.mark.skipif(f"3.{sys.version_info.minor}" != supported()[0], reason="the list is of the oldest Python")
def test_the_list_is_up_to_date(found: Mapping[str, Mapping[str, Licence]]) -> None:
    """THIRD_PARTY_LICENSES.md lists what comes along now: `make licences` would write the same."""
    assert LIST.read_text() == listing(found)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("(MIT OR GPL-2.0-only) AND AGPL-3.0-only", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("SSPL-1.0", False),
        ("LicenseRef-NVIDIA-Proprietary", False),
    ],
)
def test_an_expression_is_judged_by_its_logic(expression: str, allowed: bool) -> None:
    """Of OR one allowed side is enough, of AND each must be, and an exception belongs to its licence."""
    assert allows(expression, ALLOWED) is allowed


@pytest.mark.parametrize(
    ("metadata", "text", "expression"),
    [
        ("License-Expression: MIT OR Apache-2.0", "", "MIT OR Apache-2.0"),
        ("License: Apache 2.0", "", "Apache-2.0"),
        ("Classifier: License :: OSI Approved :: MIT License", "", "MIT"),
        ("Classifier: License :: OSI Approved :: BSD License", NEITHER, "BSD-3-Clause"),
        ("Classifier: License :: OSI Approved :: BSD License", NEITHER.split(".", maxsplit=1)[0], "BSD-2-Clause"),
        ("Classifier: License :: OSI Approved :: BSD License", "", None),
        ("License: see the file", "All rights reserved.", None),
        ("License-Expression: GPL-3.0-only\nClassifier: License :: OSI Approved :: MIT License", "", "GPL-3.0-only"),
    ],
)
def test_a_licence_is_read_from_what_settles_it(
    tmp_path: Path, metadata: str, text: str, expression: str | None
) -> None:
    """PEP 639's expression counts before the field, that before a classifier, that before the wording; else unknown."""
    assert licence_of(package(tmp_path, metadata, text)).expression == expression


def test_what_nothing_settles_is_refused() -> None:
    """An unknown licence fails, for the tools too; a copyleft tool passes as a tool and fails as a dependency."""
    gpl, unknown = Licence("GPL-3.0-or-later", "field"), Licence(None, "nothing")

    assert [each.split(":")[0] for each in refused({"core": {"a": gpl}, "tools": {"b": gpl}})] == ["core"]
    assert [each.split(":")[1] for each in refused({"tools": {"c": unknown}})] == [" c"]


def test_each_decision_of_a_person_is_still_needed() -> None:
    """Each licence that a person decided is of a package that still comes along, and has its reason."""
    names = {name for each in scopes().values() for name in each}

    assert set(POLICY["decided"]) <= names
    assert all(each["because"] for each in POLICY["decided"].values())
