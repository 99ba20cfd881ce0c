"""A lock as facts: each pin with its version, the systems that it is for, and the hashes of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


@dataclass(frozen=True)
class Pin:
    """One line of a lock."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The normalised name."""
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> Version:
        """The one version allowed."""
        (only,) = self.requirement.specifier
        assert only.operator == "==", f"{self.requirement} is no pin"
        return Version(only.version)

    def holds(self, environment: Mapping[str, str] | None = None) -> bool:
        """Whether it is installed in ``environment``, by default here."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate(dict(environment) if environment else None)

    def __str__(self) -> str:
        return str(self.requirement)


def python_on_linux(python: str) -> Mapping[str, str]:
    """The facts that markers ask about, for CPython ``python`` on Linux x86-64."""
    return {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{python}.7",
        "python_version": python,
        "sys_platform": "linux",
        "extra": "",
    }


def pins(lock: Path) -> tuple[Pin, ...]:
    """Every pin of ``lock``, in its order."""
    return tuple(_pins(lock.read_text()))


def _pins(text: str) -> Iterator[Pin]:
    plain = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    for line in plain.replace("\\\n", " ").splitlines():
        words = line.split(" --hash=")
        if words[0].strip():
            yield Pin(Requirement(words[0].strip()), tuple(each.strip().removeprefix("sha256:") for each in words[1:]))
