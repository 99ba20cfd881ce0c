"""From a fleet's options to its replicas by each clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from servewise.ask.deploying import Options, deploy, hardware_of
from servewise.ask.fleet_options import Further, further_of
from servewise.ask.machine import Machine, staged_caveats
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.serving import PolicyOptions, longest_context, policies_named
from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.plan.server import Server
from servewise.pricing.price import accelerator_price, stated_price
from servewise.simulate.fleet.kind import ReplicaKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """``count`` replicas of ``deployment``, each of that ``weight`` for the router.

    ``price`` [$ per accelerator-hour] stands for the shipped one.
    """

    deployment: Deployment
    count: int
    weight: float = 1.0
    price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The replicas of a ``group`` by each clock: nominal, or nominal, slow and fast; with their figures' caveats."""

    group: Group
    kinds: tuple[ReplicaKind, ...]
    usd_per_hour: float | None
    caveats: tuple[Caveat, ...]

    @property
    def hardware(self) -> str:
        """That of one replica, in words."""
        return hardware_of(self.group.deployment)


def groups_of(
    model: ModelLike,
    accelerator: AcceleratorLike | None,
    options: Options,
    count: int,
    also: str | Iterable[str | Further],
    price: float | None,
) -> tuple[Group, ...]:
    """``count`` replicas on ``accelerator`` at that ``price``, and those on others that ``also`` names."""
    first = Group(deployment=_one_replica(deploy(model, accelerator, **options)), count=count, price=price)
    others = (
        Group(deployment=_one_replica(deploy(model, one.accelerator, **options)), count=one.count, weight=one.weight)
        for one in further_of(also)
    )
    return (first, *others)


def _one_replica(deployment: Deployment) -> Deployment:
    """One replica of it: data parallelism is what the fleet is."""
    split = deployment.parallelism
    if split.data > 1:
        what = f"{split.accelerators} accelerators hold {split.data} replicas"
        raise InputError(what, where="count", hint="say how many with replicas, and --tp and --pp for one of them")
    return deployment


def longest_of(groups: Sequence[Group]) -> int | None:
    """The longest context that every replica takes."""
    known = [found for each in groups if (found := longest_context(each.deployment)) is not None]
    return min(known, default=None)


def servers_of(group: Group, machine: Machine, policy: str, choices: PolicyOptions, seed: int) -> Servers:
    """The replicas of ``group``, each a ``machine`` under ``policy``, by each of its clocks."""
    server = machine.server(policies_named([policy], group.deployment, choices)[0])
    kinds = tuple(_kind(each, machine, group.weight) for each in machine.by_clock(server, seed))
    caveats = machine.caveats + staged_caveats(group.deployment)
    return Servers(group=group, kinds=kinds, usd_per_hour=_usd_per_hour(group), caveats=caveats)


def _kind(server: Server, machine: Machine, weight: float) -> ReplicaKind:
    return ReplicaKind(
        policy=machine.policy(server.policy),
        beside=None if server.speculation is None else server.speculation.beside,
        estimator=server.estimator,
        blocks=server.blocks,
        block_tokens=server.block_tokens,
        hash_block_tokens=server.hash_block_tokens,
        deployment=server.deployment,
        weight=weight,
    )


def _usd_per_hour(group: Group) -> float | None:
    if group.price is not None:
        return stated_price(group.price, "price").usd_per_hour
    known = accelerator_price(group.deployment.accelerator.name)
    return None if known is None else known.usd_per_hour


def by_clock(pools: Sequence[Servers]) -> tuple[tuple[ReplicaKind, ...], ...]:
    """All replicas by each clock that every pool has."""
    clocks = min(len(each.kinds) for each in pools)
    return tuple(tuple(each.kinds[clock] for each in pools for _ in range(each.group.count)) for clock in range(clocks))
