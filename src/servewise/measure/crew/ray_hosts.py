"""The nodes of a Ray cluster as hosts: on each an actor with worker processes of its own."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from servewise.errors import InputError, RunFailed
from servewise.executing.build import difference, this_build
from servewise.executing.cluster import first_line
from servewise.measure.crew.relay import About, Heard, Relay
from servewise.measure.crew.remote import LinkLost, RemoteHost

PLACE_S = 60.0  # for a node to give the cores and to start the actor
SILENT_S = 10.0  # a host that answers no call for so long is lost
CALLS = 4  # at once: the clock, the words to a worker, the words of all workers, and the end
GOODBYE_S = 15.0


class RayLink:
    """Calls to the ``Relay`` that is an actor on a node. LinkLost where the actor, its node or the cluster is gone."""

    def __init__(self, ray: ModuleType, actor: Any, name: str) -> None:
        self.name = name
        self._ray, self._actor = ray, actor

    def clock(self) -> float:
        """The node's clock."""
        return float(self._answer(self._actor.clock.remote(), SILENT_S))

    def tell(self, seat: int, data: bytes) -> None:
        """Tell a worker something."""
        self._answer(self._actor.tell.remote(seat, data), SILENT_S)

    def hear(self, patience_s: float) -> Sequence[Heard]:
        """What the workers said."""
        found: Sequence[Heard] = self._answer(self._actor.hear.remote(patience_s), patience_s + SILENT_S)
        return found

    def close(self) -> None:
        """End the workers and the actor."""
        with contextlib.suppress(LinkLost):
            self._answer(self._actor.close.remote(), GOODBYE_S)
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._ray.kill(self._actor)

    def _answer(self, ref: Any, within_s: float) -> Any:
        try:
            return self._ray.get(ref, timeout=within_s)
        except self._ray.exceptions.GetTimeoutError as error:
            raise LinkLost(f"no word for {within_s:g} s") from error
        except self._ray.exceptions.RayActorError as error:
            raise LinkLost("its node, or the actor on it, is gone") from error
        except (ConnectionError, self._ray.exceptions.RayError) as error:
            raise LinkLost(first_line(error)) from error


def ray_hosts(ray: ModuleType, workers: int) -> list[RemoteHost]:
    """Every node of the cluster that has cores for as many ``workers``, each a host; the cores are taken.

    RunFailed where no node has them, or does not give them in time; InputError where a node has another servewise.
    """
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= workers]
    if not nodes:
        raise RunFailed(f"no node of the Ray cluster has {workers} cores for workers that send")
    actors = [_actor(ray, node["NodeID"], workers) for node in nodes]
    try:
        known = _known(ray, actors)
    except BaseException:
        for actor in actors:
            with contextlib.suppress(Exception):  # it may be gone already
                ray.kill(actor)
        raise
    names = _names([each.name for each in known], [str(node["NodeID"]) for node in nodes])
    links = [RayLink(ray, actor, name) for actor, name in zip(actors, names, strict=True)]
    return [RemoteHost(link, workers, about) for link, about in zip(links, known, strict=True)]


def _actor(ray: ModuleType, node: str, workers: int) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    placed = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
    options = {"num_cpus": workers, "max_concurrency": CALLS, "max_restarts": 0, "scheduling_strategy": placed}
    return ray.remote(Relay).options(**options).remote(workers)


def _known(ray: ModuleType, actors: Sequence[Any]) -> list[About]:
    errors = ray.exceptions
    try:
        found: list[About] = ray.get([actor.about.remote() for actor in actors], timeout=PLACE_S)
    except errors.GetTimeoutError as error:
        raise RunFailed(f"the Ray cluster gave no cores for workers within {PLACE_S:g} s") from error
    except (ConnectionError, errors.RayError) as error:
        raise _unplaced(error) from error
    for each in found:
        other = difference(this_build(), each.build)
        if other is not None:
            hint = "install the same there"
            raise InputError(f"the cluster's {each.name} has {other}", where="executor", hint=hint)
    return found


def _unplaced(error: Exception) -> InputError | RunFailed:
    """Why an actor did not begin: a node lacks what it needs, or is gone."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, ImportError):
        what, hint = f"the cluster cannot import it ({first_line(cause)})", "install servewise[measure] on every node"
        return InputError(what, where="executor", hint=hint)
    return RunFailed(f"the Ray cluster cannot start workers: {first_line(error)}")


def _names(hosts: Sequence[str], nodes: Sequence[str]) -> list[str]:
    """The hosts' own names, with the node's mark where several have the same.

    >>> _names(["a", "b", "b"], ["0123456789", "1123456789", "2123456789"])
    ['a', 'b (11234567)', 'b (21234567)']
    """
    counts = Counter(hosts)
    return [host if counts[host] == 1 else f"{host} ({node[:8]})" for host, node in zip(hosts, nodes, strict=True)]
