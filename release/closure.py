"""What comes along: the packages that the core or an extra brings, by the metadata of what is installed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: What some builds of torch bring for their accelerator, and others do not; it is neither locked nor listed.
OF_A_BUILD = ("nvidia-", "cuda-", "triton", "pytorch-triton", "intel-")


@dataclass(frozen=True)
class Member:
    """One package that comes along, and the names of those that it brings itself."""

    name: str
    distribution: Distribution
    needs: tuple[str, ...]


def closure(roots: Iterable[Requirement]) -> Mapping[str, Member]:
    """The packages that ``roots`` bring, by name in order. Raises PackageNotFoundError for one not installed."""
    environment = dict[str, str](default_environment())  # type: ignore[arg-type]
    found: dict[str, set[str]] = {}
    open_ends = [each for each in roots if _holds(each, environment, "")]
    while open_ends:
        root = open_ends.pop()
        name, extras = canonicalize_name(root.name), set(root.extras) | {""}
        if name.startswith(OF_A_BUILD) or (name in found and extras <= found[name]):
            continue
        found[name] = found.get(name, set()) | extras
        open_ends += _needs(name, found[name], environment)
    return {name: _member(name, extras, environment) for name, extras in sorted(found.items())}


def _member(name: str, extras: set[str], environment: Mapping[str, str]) -> Member:
    needs = {canonicalize_name(each.name) for each in _needs(name, extras, environment)} - {name}
    return Member(name, distribution(name), tuple(sorted(each for each in needs if not each.startswith(OF_A_BUILD))))


def _needs(name: str, extras: set[str], environment: Mapping[str, str]) -> Iterator[Requirement]:
    for each in map(Requirement, distribution(name).requires or ()):
        if any(_holds(each, environment, extra) for extra in extras):
            yield each


def _holds(need: Requirement, environment: Mapping[str, str], extra: str) -> bool:
    return need.marker is None or need.marker.evaluate({**environment, "extra": extra})
