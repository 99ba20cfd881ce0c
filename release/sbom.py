"""The bill of materials: a wheel, what it brings, and what each extra brings, as CycloneDX 1.6.

    python -m release.sbom [--wheel WHEEL] [--output FILE]

The same tree gives the same bytes: versions are the locked ones, the date is the commit's (or SOURCE_DATE_EPOCH), and
the serial number is drawn from the content. What the core brings is ``required``; what only an extra brings is
``optional`` and names its extras.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import LicenseAcknowledgement, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from release.closure import Member, closure
from release.licences import licence_of
from release.tree import commit_time_s, requirements, user_extras, version
from release.versions import versions

OURS = uuid.uuid5(uuid.NAMESPACE_DNS, "servewise")


def bill(wheel: Path | None, time_s: int) -> Bom:
    """The bill of ``wheel``, dated ``time_s`` [s since 1970]."""
    extras = {each: closure(requirements((each,))) for each in user_extras()}
    core = closure(requirements())
    members = dict(core) | {name: each for one in extras.values() for name, each in one.items()}
    whose = {name: sorted(extra for extra in extras if name in extras[extra]) for name in members if name not in core}

    root = _root(wheel)
    components = {name: _component(each, whose.get(name, ())) for name, each in sorted(members.items())}
    bom = Bom(components=components.values(), serial_number=OURS)
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(time_s, UTC)
    bom.register_dependency(root, [components[canonicalize_name(each.name)] for each in requirements(tuple(extras))])
    for name, each in members.items():
        bom.register_dependency(components[name], [components[need] for need in each.needs if need in components])
    bom.serial_number = uuid.uuid5(OURS, JsonV1Dot6(bom).output_as_string())
    return bom


def _root(wheel: Path | None) -> Component:
    digests = [hashlib.sha256(each.read_bytes()).hexdigest() for each in (wheel,) if each]
    return Component(
        type=ComponentType.APPLICATION,
        name="servewise",
        version=version(),
        bom_ref="servewise",
        purl=PackageURL("pypi", name="servewise", version=version()),
        licenses=[_expression("Apache-2.0")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in digests],
    )


def _component(member: Member, extras: tuple[str, ...] | list[str]) -> Component:
    at, licence = versions().get(member.name, member.distribution.version), licence_of(member.distribution)
    made_by = member.distribution.metadata.json.get("author") or member.distribution.metadata.json.get("maintainer")
    return Component(
        type=ComponentType.LIBRARY,
        name=member.name,
        version=at,
        bom_ref=member.name,
        purl=PackageURL("pypi", name=member.name, version=at),
        scope=ComponentScope.OPTIONAL if extras else ComponentScope.REQUIRED,
        licenses=[_expression(licence.expression)] if licence.expression else [],
        supplier=OrganizationalEntity(name=str(made_by)) if made_by else None,
        properties=[Property(name="servewise:extra", value=each) for each in extras],
    )


def _expression(spdx: str) -> LicenseExpression:
    return LicenseExpression(spdx, acknowledgement=LicenseAcknowledgement.DECLARED)


def text(wheel: Path | None = None, time_s: int | None = None) -> str:
    """The bill as JSON. Its date is ``time_s``, else SOURCE_DATE_EPOCH, else when HEAD was committed."""
    when = os.environ.get("SOURCE_DATE_EPOCH") if time_s is None else time_s
    return JsonV1Dot6(bill(wheel, int(when or commit_time_s()))).output_as_string(indent=2) + "\n"


def main() -> int:
    """Print the bill, or write it."""
    parser = argparse.ArgumentParser(prog="python -m release.sbom", description="The bill of materials, CycloneDX 1.6.")
    parser.add_argument("--wheel", type=Path, help="the wheel whose SHA-256 it carries")
    parser.add_argument("--output", type=Path, help="the file to write, instead of stdout")
    wanted = parser.parse_args()
    made = text(wanted.wheel)
    if wanted.output:
        wanted.output.write_text(made)
    else:
        sys.stdout.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
