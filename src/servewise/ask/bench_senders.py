"""Who sends a measurement's requests: this process, several of this machine, or the nodes of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address

from servewise.ask.bench_options import BenchOptions
from servewise.errors import InputError
from servewise.executing.cluster import connect
from servewise.executing.executor import executor_named
from servewise.measure.crew.crew import Crew
from servewise.measure.crew.here import Here
from servewise.measure.crew.relay import loopback
from servewise.measure.target import Target


@contextmanager
def senders(options: BenchOptions, target: Target) -> Iterator[Crew | None]:
    """The crew of ``options``, there until the context ends; None: this process alone sends.

    ``workers`` are the processes of this machine, or of each node of the cluster that the ``executor`` names.
    """
    cluster = executor_named(options.executor or "local").cluster
    if cluster is not None:
        with _on_cluster(cluster, options.workers, target) as crew:
            yield crew
    elif options.workers > 1:
        with Crew([Here(options.workers)]) as crew:
            yield crew
    else:
        yield None


@contextmanager
def _on_cluster(cluster: str, workers: int, target: Target) -> Iterator[Crew]:
    from servewise.measure.crew.ray_hosts import ray_hosts

    with connect(None if cluster == "auto" else cluster) as ray:
        hosts = ray_hosts(ray, workers)
        with Crew(hosts) as crew:
            refuse_loopback(target, {each.name: each.about.loopback for each in hosts if each.about is not None})
            yield crew


def refuse_loopback(target: Target, loopbacks: Mapping[str, str]) -> None:
    """InputError where ``target`` is another machine for each host; ``loopbacks``: whose theirs is, by host."""
    own = loopback()
    other = next((name for name, mark in loopbacks.items() if mark != own), None)
    if other is not None and _is_loopback(target.host):
        what = f"{target.host} is another machine for {other}, which is to send too"
        raise InputError(what, where="URL", hint="the server's address as the hosts know it")


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified
