"""The bill of materials: valid, complete, the same each time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from release import sbom
from release.tree import ROOT, user_extras, version

DATE_S = 1_764_547_200  # 2025-12-01T00:00:00Z


@pytest.fixture(scope="module")
def bill() -> Any:
    """The bill without a wheel, as read by others."""
    return json.loads(sbom.text(time_s=DATE_S))


def test_it_is_valid() -> None:
    """The published schema of CycloneDX 1.6 accepts it, strictly, and refuses it once it is spoilt."""
    validator = JsonStrictValidator(SchemaVersion.V1_6)

    assert validator.validate_str(sbom.text(time_s=DATE_S)) is None
    assert validator.validate_str(sbom.text(time_s=DATE_S).replace('"library"', '"parcel"')) is not None


def test_it_says_what_it_is_of(bill: Any) -> None:
    """It names servewise, its version and the date asked for."""
    assert bill["metadata"]["component"]["name"] == "servewise"
    assert bill["metadata"]["component"]["version"] == version()
    assert bill["metadata"]["timestamp"] == "2025-12-01T00:00:00+00:00"


def test_every_component_is_reached_from_the_root(bill: Any) -> None:
    """Following the dependencies from servewise reaches every component, and nothing that is not listed."""
    needs = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    seen, ends = set(), ["servewise"]
    while ends:
        name = ends.pop()
        if name not in seen:
            seen.add(name)
            ends += needs[name]

    assert seen == {"servewise"} | {each["bom-ref"] for each in bill["components"]}


def test_each_component_can_be_looked_up(bill: Any) -> None:
    """Each has a version, a package URL that says the same, a licence, and whether it is needed."""
    for each in bill["components"]:
        assert each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}"
        assert each["licenses"][0]["expression"]
        assert each["scope"] in {"required", "optional"}


def test_what_only_an_extra_brings_names_it(bill: Any) -> None:
    """Torch is optional and the engine's; numpy is required and belongs to no extra."""
    of = {each["name"]: each for each in bill["components"]}

    assert (of["numpy"]["scope"], of["numpy"].get("properties")) == ("required", None)
    assert {"name": "servewise:extra", "value": "engine"} in of["torch"]["properties"]
    assert of["torch"]["scope"] == "optional"
    said = {prop["value"] for each in bill["components"] for prop in each.get("properties", [])}
    assert said == set(user_extras())


def test_it_carries_the_hash_of_the_wheel(tmp_path: Path) -> None:
    """With a wheel, servewise carries the SHA-256 of that file."""
    wheel = tmp_path / "any.whl"
    wheel.write_bytes(b"a wheel")
    (said,) = json.loads(sbom.text(wheel, DATE_S))["metadata"]["component"]["hashes"]

    assert said == {"alg": "SHA-256", "content": hashlib.sha256(b"a wheel").hexdigest()}


def test_it_is_the_same_each_time() -> None:
    """Another process with another hash seed, zone and locale writes the same bytes; another date does not."""
    made = [
        subprocess.run(
            [sys.executable, "-m", "release.sbom"], cwd=ROOT, env=os.environ | env, capture_output=True, check=True
        ).stdout
        for env in (
            {"SOURCE_DATE_EPOCH": str(DATE_S), "PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C"},
            {"SOURCE_DATE_EPOCH": str(DATE_S), "PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"},
            {"SOURCE_DATE_EPOCH": str(DATE_S + 1), "PYTHONHASHSEED": "1"},
        )
    ]

    assert made[0] == made[1] == sbom.text(time_s=DATE_S).encode()
    assert made[2] != made[0]
