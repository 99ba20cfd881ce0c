"""Where tasks are to be done, as it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from servewise.errors import UnknownName
from servewise.executing.cluster import host_and_port
from servewise.records.origin import Source

LOCAL, RAY = "local", "ray"
SMALL = 20_000  # requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """``processes`` of this machine (1: the caller's own), or a Ray ``cluster``: ``auto`` or its address.

    ``keep``: a folder that keeps what each finished task gave, so that a sweep that was broken off goes on from there;
    ``forget``: what is kept of a sweep is taken away when the sweep ends well; ``sources``: the files that it is made
    from, as what is kept says. Nothing else depends on any of it.
    """

    processes: int = 1
    cluster: str | None = None
    keep: Path | None = None
    forget: bool = False
    sources: tuple[Source, ...] = ()

    def worthwhile(self, requests: int) -> Executor:
        """The same with one process where ``requests`` to simulate are too few: starting more takes as long."""
        return self if requests > SMALL or self.cluster else replace(self, processes=1)


def executor_named(
    name: str | Executor, processes: int = 1, keep: str | Path | None = None, *, forget: bool = False
) -> Executor:
    """``local``, ``ray``, ``ray://host:port`` or ``host:port``; UnknownName for another word.

    >>> executor_named("ray://10.0.0.5:10001").cluster, executor_named("ray").cluster, executor_named("local").cluster
    ('ray://10.0.0.5:10001', 'auto', None)
    """
    if isinstance(name, Executor):
        return name
    folder = None if keep is None else Path(keep)
    if name == LOCAL:
        return Executor(processes=processes, keep=folder, forget=forget)
    if name == RAY:
        return Executor(processes=processes, cluster="auto", keep=folder, forget=forget)
    if ":" not in name:
        hint = "local, ray, ray://host:port or host:port"
        raise UnknownName("executor", name, (LOCAL, RAY), where="executor", hint=hint)
    host_and_port(name)
    return Executor(processes=processes, cluster=name, keep=folder, forget=forget)
